"""Every attribute name that is read, with the convention and its version.

One name stands for one key of the wire; which dialect means what by it is said in `dialects/`.
"GenAI" is the OpenTelemetry semantic convention for generative AI, with the version that brought the key.
"""

# --- OpenTelemetry GenAI --------------------------------------------------------------------------

OPERATION = "gen_ai.operation.name"  # GenAI 1.28
SYSTEM = "gen_ai.system"  # GenAI up to 1.36
PROVIDER = "gen_ai.provider.name"  # GenAI 1.37
REQUEST_MODEL = "gen_ai.request.model"  # GenAI
RESPONSE_MODEL = "gen_ai.response.model"  # GenAI
RESPONSE_ID = "gen_ai.response.id"  # GenAI
CONVERSATION = "gen_ai.conversation.id"  # GenAI 1.34
AGENT_NAME = "gen_ai.agent.name"  # GenAI 1.31
WORKFLOW_NAME = "gen_ai.workflow.name"  # GenAI 1.41
INPUT_MESSAGES = "gen_ai.input.messages"  # GenAI 1.37
OUTPUT_MESSAGES = "gen_ai.output.messages"  # GenAI 1.37
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"  # GenAI 1.37
TOOL_DEFINITIONS = "gen_ai.tool.definitions"  # GenAI 1.38
TOOL_NAME = "gen_ai.tool.name"  # GenAI 1.31
TOOL_CALL_ID = "gen_ai.tool.call.id"  # GenAI 1.31
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"  # GenAI 1.38
TOOL_RESULT = "gen_ai.tool.call.result"  # GenAI 1.38
TRANSFER_MODE = "gen_ai.transfer.mode"  # GenAI development
TRANSFER_TARGET = "gen_ai.transfer.target.name"  # GenAI development
GUARDRAIL_NAME = "gen_ai.guardrail.name"  # openai-agents-v2 0.1
RETRIEVAL_DOCUMENTS = "gen_ai.retrieval.documents"  # GenAI 1.40
RETRIEVAL_QUERY = "gen_ai.retrieval.query.text"  # GenAI 1.40
ERROR_TYPE = "error.type"  # OpenTelemetry 1.21
PROMPT = "gen_ai.prompt"  # GenAI up to 1.27, OpenLLMetry (prefix), LangSmith (one blob)
COMPLETION = "gen_ai.completion"  # as PROMPT

INPUT_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")  # GenAI 1.28; up to 1.27
OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")  # GenAI 1.28; up to 1.27
CACHE_READ_TOKENS = (
    "gen_ai.usage.cache_read.input_tokens",  # GenAI 1.40
    "gen_ai.usage.cache_read_input_tokens",  # OpenLLMetry, Strands
)
CACHE_WRITE_TOKENS = (
    "gen_ai.usage.cache_creation.input_tokens",  # GenAI 1.40
    "gen_ai.usage.cache_write.input_tokens",  # GenAI development, Anthropic SDK 2.x
    "gen_ai.usage.cache_creation_input_tokens",  # OpenLLMetry
    "gen_ai.usage.cache_write_input_tokens",  # Strands
)

EVENT_DETAILS = "gen_ai.client.inference.operation.details"  # GenAI 1.37, event
EVENT_PROMPT = "gen_ai.content.prompt"  # GenAI up to 1.27, event
EVENT_COMPLETION = "gen_ai.content.completion"  # GenAI up to 1.27, event
EVENT_CONTENT = "gen_ai.event.content"  # azure-ai-inference, azure-ai-agents, Semantic Kernel: all that an event says
EVENT_CHOICE = "gen_ai.choice"  # GenAI 1.28 to 1.36, event
EVENT_MESSAGES = {  # GenAI 1.28 to 1.36, events by role
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}

# --- OpenInference (semantic conventions 0.1.42) --------------------------------------------------

OI_KIND = "openinference.span.kind"
OI_INPUT = "input.value"
OI_OUTPUT = "output.value"
OI_INPUT_MESSAGES = "llm.input_messages."
OI_OUTPUT_MESSAGES = "llm.output_messages."
OI_PROMPTS = "llm.prompts"
OI_MODEL = "llm.model_name"
OI_TOOLS = "llm.tools."
OI_TOOL_LIST = "llm.tools"  # CrewAI's events: all in one
OI_PARAMETERS = "llm.invocation_parameters"
OI_TOKENS_PROMPT = "llm.token_count.prompt"
OI_TOKENS_COMPLETION = "llm.token_count.completion"
OI_TOKENS_CACHE_READ = "llm.token_count.prompt_details.cache_read"
OI_TOKENS_CACHE_WRITE = "llm.token_count.prompt_details.cache_write"
OI_TOOL_NAME = "tool.name"
OI_TOOL_DESCRIPTION = "tool.description"
OI_TOOL_PARAMETERS = "tool.parameters"
OI_TOOL_ID = "tool.id"
OI_TOOL_CALL_IDS = ("tool_call.id", "tool.call_id")  # 0.1.42; the processors for Strands and Agent Framework
OI_AGENT_NAME = "agent.name"
OI_NODE = "graph.node.id"
OI_NODE_PARENT = "graph.node.parent_id"
OI_NODE_NAME = "graph.node.name"
OI_DOCUMENTS = "retrieval.documents."
OI_RERANKER_DOCUMENTS = "reranker.output_documents."
OI_EMBEDDING_MODEL = "embedding.model_name"
OI_EMBEDDINGS = "embedding.embeddings."
OI_METADATA = "metadata"
SESSION = "session.id"

# --- OpenLLMetry / Traceloop (0.44 to 0.62) -------------------------------------------------------

TL_PREFIX = "traceloop."
TL_KIND = "traceloop.span.kind"
TL_NAME = "traceloop.entity.name"
TL_INPUT = "traceloop.entity.input"
TL_OUTPUT = "traceloop.entity.output"
TL_PROPERTIES = "traceloop.association.properties."
TL_REQUEST_TYPE = "llm.request.type"
TL_FUNCTIONS = "llm.request.functions."
TL_TASK_OUTPUT = "gen_ai.task.output"
TL_TASK_INPUT = "gen_ai.task.input"
TL_TASK_NAME = "gen_ai.task.name"
TL_WORKFLOW_EDGES = "gen_ai.workflow.edges"
TL_TOOL_ARGUMENTS = "tool.arguments"  # LlamaIndex
TL_HANDOFF_FROM = "gen_ai.handoff.from_agent"
TL_HANDOFF_TO = "gen_ai.handoff.to_agent"
TL_CREW_USAGE = "crewai.crew.token_usage"
TL_CREW_RESULT = "crewai.crew.result"
AGNO_TEAM = "agno.team.name"
CREW_PREFIX = "crewai."
CREW_NAME = "crewai.crew.name"
CREW_TASKS = "crewai.crew.tasks"
CREW_TASK = "crewai.task.description"
CREW_ROLE = "crewai.agent.role"

# --- LangSmith OpenTelemetry (0.15) ---------------------------------------------------------------

LS_KIND = "langsmith.span.kind"
LS_METADATA = "langsmith.metadata."

# --- Langfuse (5.x) -------------------------------------------------------------------------------

LF_KIND = "langfuse.observation.type"
LF_INPUT = "langfuse.observation.input"
LF_OUTPUT = "langfuse.observation.output"
LF_MODEL = "langfuse.observation.model.name"
LF_USAGE = "langfuse.observation.usage_details"
LF_COST = "langfuse.observation.cost_details"
LF_LEVEL = "langfuse.observation.level"
LF_STATUS = "langfuse.observation.status_message"
LF_METADATA = "langfuse.observation.metadata."

# --- MLflow (3.x) ---------------------------------------------------------------------------------

ML_KIND = "mlflow.spanType"
ML_INPUTS = "mlflow.spanInputs"
ML_OUTPUTS = "mlflow.spanOutputs"
ML_USAGE = "mlflow.chat.tokenUsage"
ML_MODEL = "mlflow.llm.model"
ML_TOOLS = "mlflow.chat.tools"
ML_CHUNK = "mlflow.chunk.value"
ML_CHUNK_EVENT = "mlflow.chunk.item."

# --- Vercel AI SDK (4 to 6, and 7 with LegacyOpenTelemetry) ---------------------------------------

AI_OPERATION = "ai.operationId"
AI_FUNCTION = "ai.telemetry.functionId"
AI_METADATA = "ai.telemetry.metadata."
AI_CONTEXT = "ai.settings.context."  # 7
AI_VALUE = "ai.value"
AI_VALUES = "ai.values"
AI_DOCUMENTS = "ai.documents"  # 6
AI_RANKING = "ai.ranking"  # 6
AI_PROMPT = "ai.prompt"
AI_MESSAGES = "ai.prompt.messages"
AI_TOOLS = "ai.prompt.tools"
AI_TEXT = "ai.response.text"
AI_OBJECT = "ai.response.object"
AI_FINISH = "ai.response.finishReason"
AI_CALLS = "ai.response.toolCalls"
AI_MODEL = "ai.model.id"
AI_RESPONSE_MODEL = "ai.response.model"
AI_RESPONSE_ID = "ai.response.id"
AI_TOOL_NAME = "ai.toolCall.name"
AI_TOOL_ID = "ai.toolCall.id"
AI_TOOL_ARGS = "ai.toolCall.args"
AI_TOOL_RESULT = "ai.toolCall.result"
AI_INPUT_TOKENS = ("ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens")
AI_OUTPUT_TOKENS = ("ai.usage.outputTokens", "ai.usage.completionTokens")
AI_CACHE_READ = ("ai.usage.cachedInputTokens", "ai.usage.inputTokenDetails.cacheReadTokens")
AI_CACHE_WRITE = ("ai.usage.inputTokenDetails.cacheWriteTokens",)

# --- Google ADK (1.x) -----------------------------------------------------------------------------

ADK_REQUEST = "gcp.vertex.agent.llm_request"
ADK_RESPONSE = "gcp.vertex.agent.llm_response"
ADK_ARGUMENTS = "gcp.vertex.agent.tool_call_args"
ADK_RESULT = "gcp.vertex.agent.tool_response"
ADK_SESSION = "gcp.vertex.agent.session_id"

# --- Strands --------------------------------------------------------------------------------------

STRANDS_TOOL_STATUS = frozenset({"gen_ai.tool.status", "tool.status"})  # 1.x; 0.2

# --- Microsoft Agent Framework, AutoGen -----------------------------------------------------------

MAF_EXECUTOR = "executor.id"
AUTOGEN_OPERATION = "messaging.operation"
AUTOGEN_RECIPIENT = "recipient_agent_type"

# --- Pydantic AI (v2 names) -----------------------------------------------------------------------

PY_ARGUMENTS = "tool_arguments"
PY_RESULT = "tool_response"
PY_AGENT = "agent_name"
PY_FINAL = "final_result"
PY_ALL_MESSAGES = ("pydantic_ai.all_messages", "all_messages_events")
PY_EVENTS = "events"
PY_NEW_MESSAGES = "pydantic_ai.new_message_index"  # where a run's own messages begin in `pydantic_ai.all_messages`
PY_REQUEST = "model_request_parameters"
PY_INPUTS = "inputs"  # of an embedding
PY_COST = "operation.cost"  # US dollars
LOGFIRE_SPAN_TYPE = "logfire.span_type"

# --- Mastra (0.24) --------------------------------------------------------------------------------

MASTRA_KIND = "mastra.span.type"
MASTRA_INPUT = "input"
MASTRA_OUTPUT = "output"

# --- Codex CLI (0.171) ----------------------------------------------------------------------------

EVENT_NAME = "event.name"
CODE_MODULE = "code.module.name"
CODEX_CALL_ID = "call_id"
CODEX_TOOL_SOURCE = "tool_source"
CODEX_CONVERSATION = "conversation.id"
CODEX_TURN_TOKENS = "codex.turn.token_usage."

# --- Gemini CLI (0.61) ----------------------------------------------------------------------------

GEMINI_CALL_ID = "gen_ai.tool.call_id"

# --- Claude Code (2.x) ----------------------------------------------------------------------------

CC_KIND = "span.type"
CC_TOOL = "tool_name"
CC_TOOL_USE_ID = "tool_use_id"
CC_REQUEST_ID = "request_id"
CC_PROMPT = "user_prompt"
CC_CONTEXT = "new_context"  # with detailed tracing: what is new to a model call, or a tool's result
CC_REPLY = "response.model_output"  # with detailed tracing
CC_CALLS = "response.has_tool_call"  # with detailed tracing
CC_INPUT = "tool_input"  # with detailed tracing
CC_MODEL = "model"

# --- MCP ------------------------------------------------------------------------------------------

MCP_METHOD = "mcp.method.name"  # MCP Python SDK 2.x, GenAI development

# --- any-agent ------------------------------------------------------------------------------------

ANY_OUTPUT = ("gen_ai.output", "genai.output")
ANY_ARGUMENTS = "gen_ai.tool.args"
