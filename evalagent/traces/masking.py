"""Secrets out of values before anything is stored: each becomes `[masked:` + 8 hex digits of its SHA-256 + `]`.

The same secret gives the same mark everywhere, so that equality survives: an argument that was copied still equals its
source. Masking twice changes nothing.

Caught:
* whatever stands under a key that names a secret (`authorization`, `x-api-key`, `db.password`, `clientSecret`,
  `refresh_token`, …) in objects, in OTLP's and Jaeger's `{key, value}` pairs, in header lists of `{name, value}`, and
  in JSON or Python text inside a text, however often it was escaped and even where it was cut off; counts such as
  `max_tokens` and `input_tokens`, paging (`next_page_token`) and log probabilities are no secrets;
* by their form: keys of Anthropic, OpenAI, Stripe, AWS, Google, GitHub, GitLab, Slack, Hugging Face, npm, LangSmith
  and their like, `Bearer …`, JSON web tokens, private key blocks, passwords in URLs, `name=value` and header lines
  whose name is that of a secret, and what the suite's own regular expressions match.

Not caught: a secret of no known form under a harmless key (a password in a sentence without digits), one that is split
over several values or encoded once more (base64 of a header), or in an image. The mark hides a strong secret; a short
one can be found again by trying all, so a mark is no way to publish passwords. A suite's expression that matches JSON's
own punctuation breaks that JSON.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from evalagent.model import Event, Json, Link, LogRecord, Span
from evalagent.traces.secret_forms import holds_numbers, is_mark, mark, mask_text, names_a_secret, seal

__all__ = ["mark", "mask", "mask_log", "mask_span"]

DEEPEST = 300
"""Nesting beyond which a value is not looked into but left out: nothing unseen may pass."""
_TOO_DEEP = "[masked: nested too deeply]"


class _Masker:
    """Masks values with the built-in rules and the suite's own patterns."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.patterns = [re.compile(pattern) for pattern in patterns]
        self.short = lru_cache(maxsize=1 << 15)(self._by_rules)

    def value(self, value: Json, depth: int = 0) -> Json:
        """The value with its secrets masked; the very same object if there are none."""
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind is dict:
            return self._object(value, depth) if depth < DEEPEST else _TOO_DEEP
        if kind is list or kind is tuple:
            if depth >= DEEPEST:
                return _TOO_DEEP
            items = [self.value(item, depth + 1) for item in value]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _object(self, value: Mapping[str, Json], depth: int) -> Json:
        named = value.get("key", value.get("name"))
        pair = named if type(named) is str and "value" in value and names_a_secret(named) else None
        items: dict[str, Json] = {}
        changed = False
        for key, old in value.items():
            name = self.text(key)
            told = pair if pair and key == "value" else key
            if names_a_secret(told) and not (key == "token" and "logprob" in value):
                new = self._sealed(old, holds_numbers(told), depth + 1)
            else:
                new = self.value(old, depth + 1)
            items[name] = new
            changed = changed or new is not old or name != key
        return items if changed else value

    def _sealed(self, value: Json, strong: bool, depth: int) -> Json:
        """A value under a secret's key; an object there is looked into, for it may only describe one (a schema)."""
        if type(value) is str:
            return seal(value)
        if strong and type(value) in (int, float):
            return mark(str(value))
        if depth >= DEEPEST:
            return _TOO_DEEP
        if type(value) is list:
            return [self._sealed(item, strong, depth + 1) for item in value]
        if type(value) is dict:
            if len(value) == 1:
                (kind, inner), *_ = value.items()
                if kind in ("stringValue", "string_value", "bytesValue", "bytes_value", "vStr"):
                    return {kind: seal(inner)} if type(inner) is str else value
                if kind in ("intValue", "int_value", "doubleValue", "double_value"):
                    return {"stringValue": mark(str(inner))} if strong else value
                if kind in ("arrayValue", "array_value", "values"):
                    return {kind: self._sealed(inner, strong, depth + 1)}
            return self.value(value, depth + 1)
        return value

    def text(self, text: str) -> str:
        """A text with the secrets in it masked, those in JSON inside it too, which stays JSON."""
        masked = self.short(text) if len(text) < 48 else self._by_rules(text)
        for pattern in self.patterns:
            masked = pattern.sub(_whole, masked)
        return text if masked == text else masked

    def _by_rules(self, text: str) -> str:
        for _ in range(16):  # a mark may be the edge at which the next secret begins
            if len(text) < 8:
                break
            masked = mask_text(text)
            if masked == text:
                break
            text = masked
        return text


@lru_cache(maxsize=64)
def _masker(patterns: tuple[str, ...]) -> _Masker:
    return _Masker(patterns)


def _whole(match: re.Match[str]) -> str:
    return mark(match.group()) if match.group() and not is_mark(match.group()) else match.group()


# --- doors ---------------------------------------------------------------------------------------


def mask(value: Json, patterns: Sequence[str] = ()) -> Json:
    """The value with its secrets masked; the very same object where there are none.

    `patterns` are the suite's own regular expressions; re.error for one that is none.
    """
    return _masker(tuple(patterns)).value(value)


def mask_span(span: Span, patterns: Sequence[str] = ()) -> Span:
    """The span with the secrets masked in its name, status, attributes, events, links and resource."""
    masker = _masker(tuple(patterns))
    attributes, resource = masker.value(span.attributes), masker.value(span.resource)
    name, message = masker.text(span.name), masker.text(span.status_message)
    events = tuple(_event(event, masker.value) for event in span.events)
    links = tuple(_link(link, masker.value) for link in span.links)
    same = attributes is span.attributes and resource is span.resource and name == span.name
    if same and message == span.status_message and events == span.events and links == span.links:
        return span
    return replace(
        span,
        attributes=attributes,
        resource=resource,
        name=name,
        status_message=message,
        events=events,
        links=links,
    )


def mask_log(log: LogRecord, patterns: Sequence[str] = ()) -> LogRecord:
    """The log record with the secrets masked in its body and attributes."""
    masker = _masker(tuple(patterns))
    body, attributes = masker.value(log.body), masker.value(log.attributes)
    if body is log.body and attributes is log.attributes:
        return log
    return replace(log, body=body, attributes=attributes)


def _event(event: Event, value: Callable[[Json], Json]) -> Event:
    attributes, name = value(event.attributes), value(event.name)
    same = attributes is event.attributes and name == event.name
    return event if same else replace(event, attributes=attributes, name=name)


def _link(link: Link, value: Callable[[Json], Json]) -> Link:
    attributes = value(link.attributes)
    return link if attributes is link.attributes else replace(link, attributes=attributes)
