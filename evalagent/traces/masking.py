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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from evalagent.model import Event, Json, Link, LogRecord, Span
from evalagent.traces.clean_texts import TAIL, WORTH, CleanTexts
from evalagent.traces.command_lines import COMMAND_KEYS, mask_command, mask_commands
from evalagent.traces.secret_forms import mask_text
from evalagent.traces.secret_names import holds_numbers, mark, names_a_secret, seal
from evalagent.traces.secret_signs import REACH, may_hold_a_secret
from evalagent.traces.suite_secrets import SuiteSecrets

__all__ = ["mark", "mask", "mask_log", "mask_span"]

DEEPEST = 300
"""Nesting beyond which a value is not looked into but left out: nothing unseen may pass."""
_TOO_DEEP = "[masked: nested too deeply]"
_SHORT = 48
"""Characters of a text that is worth remembering, whatever it is: names, ids, states come again and again."""
_LONG = 1 << 14
"""Characters of a text that is worth remembering where it may hold a secret: the same instructions in every call."""


class _Masker:
    """Masks values with the built-in rules and the suite's own expressions."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.own = SuiteSecrets(patterns)
        self.short = lru_cache(maxsize=1 << 15)(self._masked)
        self.long = lru_cache(maxsize=1 << 8)(self._masked)
        self.histories = CleanTexts()
        self.resource: Mapping[str, Json] = {}
        """The last one that was clean: most spans share theirs."""
        self.objects: dict[tuple[str, ...], bool | None] = {}
        self.started: tuple[Mapping[str, Json], Mapping[str, Json]] = ({}, {})
        """The last resource, and it with its command line masked."""

    # --- most values: nothing to mask, found out at once for many texts together ---

    def clean(self, texts: list[str]) -> bool:
        """Whether none of these texts holds a secret. False: one may."""
        if self.own and not self.own.joinable:
            return False
        joined = "\0".join(texts)
        return not may_hold_a_secret(joined) and not (self.own and self.own.may_be_in(joined))

    def gather(self, value: Json, texts: list[str], depth: int) -> bool:
        """Put every text of a value into `texts`; False if something else than they may have to be masked."""
        level = [value]
        while level:
            if depth >= DEEPEST:
                return False
            below: list[Json] = []
            for one in level:
                items = one
                if type(one) is dict:
                    if not self._harmless(one):
                        return False
                    items = one.values()
                for item in items:
                    kind = type(item)
                    if kind is str:
                        texts.append(item)
                    elif kind is dict or kind is list or kind is tuple:
                        below.append(item)
            level = below
            depth += 1
        return True

    def _harmless(self, value: Mapping[str, Json]) -> bool:
        """Whether the keys of an object neither hold secrets nor name any."""
        keys = tuple(value)
        known = self.objects.get(keys, 0)
        if known == 0:
            known = all(not names_a_secret(key) and self.text(key) is key for key in keys)
            if known and "value" in value and ("key" in value or "name" in value):
                known = None
            if len(keys) <= 100 and sum(map(len, keys)) <= 4000:
                if len(self.objects) >= 1 << 12:
                    self.objects.clear()
                self.objects[keys] = known
        if known is None:
            named = value.get("key", value.get("name"))
            return not (type(named) is str and (names_a_secret(named) or named in COMMAND_KEYS))
        return bool(known)

    def commands(self, resource: Mapping[str, Json]) -> Mapping[str, Json]:
        """A resource with the secrets of its command line masked."""
        if self.started[0] is not resource:
            self.started = (resource, mask_commands(resource))
        return self.started[1]

    def span_is_clean(self, span: Span) -> bool:
        """Whether nothing of a span has to be masked. False: something may have to be."""
        if not self._harmless(span.attributes):
            return False
        own = bool(self.own)
        texts = [span.name, span.status_message, span.scope, span.scope_version]
        known = self.histories.of(span.trace_id)
        fresh: dict[str, str] = {}
        grown = 0
        for key, value in span.attributes.items():
            kind = type(value)
            if kind is str:
                if len(value) < WORTH or own:
                    texts.append(value)
                    continue
                before = known.get(key, "")
                if before == value:
                    continue
                same = len(before) - TAIL
                texts.append(value[same - REACH :] if before and value.startswith(before[:same]) else value)
                fresh[key] = value
                grown += len(value) - len(before)
            elif (kind is list or kind is dict or kind is tuple) and not self.gather(value, texts, 1):
                return False
        resource = span.resource if span.resource is not self.resource else None
        if resource and not self.gather(resource, texts, 0):
            return False
        for event in span.events:
            texts.append(event.name)
            if not self.gather(event.attributes, texts, 0):
                return False
        for link in span.links:
            if not self.gather(link.attributes, texts, 0):
                return False
        if not self.clean(texts):
            return False
        if fresh:
            self.histories.keep(span.trace_id, fresh, grown)
        if resource:
            self.resource = resource
        return True

    # --- the others: part by part ---

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
            if key == "value" and named in COMMAND_KEYS:
                old = mask_command(old)
                changed = changed or old is not value[key]
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
        if len(text) < _SHORT:
            masked = self.short(text)
        elif not may_hold_a_secret(text) and not self.own:
            return text
        else:
            masked = self.long(text) if len(text) <= _LONG else self._masked(text)
        return text if masked == text else masked

    def _masked(self, text: str) -> str:
        if may_hold_a_secret(text):
            for _ in range(16):  # a mark may be the edge at which the next secret begins
                if len(text) < 8:
                    break
                masked = mask_text(text)
                if masked == text:
                    break
                text = masked
        return self.own.masked(text) if self.own else text


@lru_cache(maxsize=64)
def _masker(patterns: tuple[str, ...]) -> _Masker:
    return _Masker(patterns)


# --- doors ---------------------------------------------------------------------------------------


def mask(value: Json, patterns: Sequence[str] = ()) -> Json:
    """The value with its secrets masked; the very same object where there are none.

    `patterns` are the suite's own regular expressions, in RE2's syntax; ValueError for one that is none.
    """
    masker = _masker(tuple(patterns))
    if type(value) is dict or type(value) is list:
        texts: list[str] = []
        if masker.gather(value, texts, 0) and masker.clean(texts):
            return value
    return masker.value(value)


def mask_span(span: Span, patterns: Sequence[str] = ()) -> Span:
    """The span with the secrets masked in its name, status, attributes, events, links, scope and resource."""
    masker = _masker(tuple(patterns))
    started, attributes = masker.commands(span.resource), mask_commands(span.attributes)
    if started is not span.resource or attributes is not span.attributes:
        span = replace(span, resource=started, attributes=attributes)
    if masker.span_is_clean(span):
        return span
    attributes, resource = masker.value(span.attributes), masker.value(span.resource)
    name, message = masker.text(span.name), masker.text(span.status_message)
    scope, version = masker.text(span.scope), masker.text(span.scope_version)
    events = tuple(_event(event, masker.value) for event in span.events)
    links = tuple(_link(link, masker.value) for link in span.links)
    same = attributes is span.attributes and resource is span.resource and name == span.name
    same = same and scope == span.scope and version == span.scope_version
    if same and message == span.status_message and events == span.events and links == span.links:
        return span
    return replace(
        span,
        scope=scope,
        scope_version=version,
        attributes=attributes,
        resource=resource,
        name=name,
        status_message=message,
        events=events,
        links=links,
    )


def mask_log(log: LogRecord, patterns: Sequence[str] = ()) -> LogRecord:
    """The log record with the secrets masked in its name, body and attributes."""
    masker = _masker(tuple(patterns))
    texts: list[str] = []
    if masker.gather([log.event_name, log.body, log.attributes], texts, -1) and masker.clean(texts):
        return log
    body, attributes, name = masker.value(log.body), masker.value(log.attributes), masker.text(log.event_name)
    if body is log.body and attributes is log.attributes and name == log.event_name:
        return log
    return replace(log, body=body, attributes=attributes, event_name=name)


def _event(event: Event, value: Callable[[Json], Json]) -> Event:
    attributes, name = value(event.attributes), value(event.name)
    same = attributes is event.attributes and name == event.name
    return event if same else replace(event, attributes=attributes, name=name)


def _link(link: Link, value: Callable[[Json], Json]) -> Link:
    attributes = value(link.attributes)
    return link if attributes is link.attributes else replace(link, attributes=attributes)
