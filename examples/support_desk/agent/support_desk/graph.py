"""The desk as a graph: the model speaks, its tools run, until it answers without asking for one."""

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from support_desk import tools

PROMPT = """You are the support desk of a small shop. Use the tools; never guess what they can tell you.
Look an order up before you act on it. An order can be cancelled only while it is open. Never pay back more than
the order's amount less what was refunded already, and refund only what the customer asked for. Cancelling does not
pay back by itself. After every change send the customer one mail that confirms it. If a tool fails because the
database is busy, try it once more; if it still fails, say so. In your answer state order numbers, amounts and
states, and claim nothing that did not happen."""


def build(model: BaseChatModel) -> CompiledStateGraph:
    """The graph over this model, ready to be invoked with messages."""
    desk_tools = [_declared(getattr(tools, name)) for name in tools.TOOLS]
    speaker = model.bind_tools(desk_tools)

    def desk(state: MessagesState) -> dict[str, list[object]]:
        return {"messages": [speaker.invoke([SystemMessage(PROMPT), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("desk", desk)
    graph.add_node("tools", ToolNode(desk_tools, handle_tool_errors=True))
    graph.add_edge(START, "desk")
    graph.add_conditional_edges("desk", tools_condition)
    graph.add_edge("tools", "desk")
    return graph.compile(name="support_desk")


def _declared(function) -> StructuredTool:
    """A tool whose schema is shown to the model and not enforced: the function gets what the model sent."""
    declared = convert_to_openai_tool(function)["function"]
    return StructuredTool(
        name=function.__name__, description=function.__doc__, args_schema=declared["parameters"], func=function
    )
