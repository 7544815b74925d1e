"""What users of the official Python SDK write, changed in nothing but base URL and key.

Each function is one thing that they do. All of them run, one after the other, and what they got is printed as one
line of JSON, by their names.
"""

import base64
import json
import os
import sys

import openai
from pydantic import BaseModel

MODEL = os.environ["CHAT_MODEL"]
client = openai.OpenAI(max_retries=0)
narrow = client.with_options(api_key=os.environ["NARROW_KEY"])
demonstration = client.with_options(
    base_url=os.environ["DEMONSTRATION_URL"], api_key=os.environ["DEMONSTRATION_KEY"]
)


class Weather(BaseModel):
    city: str
    degrees: int


GET_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def asking(question, **fields):
    return {"model": MODEL, "messages": [{"role": "user", "content": question}], **fields}


def chat(question, sdk=client, **fields):
    return sdk.chat.completions.create(**asking(question, **fields))


def thrown(ask):
    try:
        ask()
    except openai.APIError as error:
        told = {"as": type(error).__name__, "code": error.code, "type": error.type, "param": error.param}
        if isinstance(error, openai.APIStatusError):
            told |= {"status": error.status_code, "request": (error.request_id or "")[:4]}
        return told
    return "nothing was thrown"


def models():
    return [model.id for model in client.models.list()]


def one_model():
    return client.models.retrieve(MODEL).id


def whole():
    answer = chat("text")
    return [answer.choices[0].message.content, answer.choices[0].finish_reason, answer.usage.completion_tokens]


def streamed():
    chunks = list(chat("text", stream=True, stream_options={"include_usage": True}))
    return {
        "text": "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]),
        "ids": len({chunk.id for chunk in chunks}),
        "usage before": [chunk.usage for chunk in chunks[:-1] if chunk.usage is not None],
        "last choices": chunks[-1].choices,
        "last usage": chunks[-1].usage.completion_tokens,
    }


def roles():
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "text"},
    ]
    return client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content


def tools_to_the_end():
    messages = [{"role": "user", "content": "tools"}]
    calling = client.chat.completions.create(model=MODEL, messages=messages, tools=[GET_WEATHER]).choices[0]
    messages.append(calling.message)
    for call in calling.message.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"7 degrees in {city}"})
    last = client.chat.completions.create(model=MODEL, messages=messages, tools=[GET_WEATHER]).choices[0]
    return [calling.finish_reason, [call.id for call in calling.message.tool_calls], last.message.content]


def tools_streamed():
    with client.chat.completions.stream(**asking("tools", tools=[GET_WEATHER])) as stream:
        choice = stream.get_final_completion().choices[0]
    return [[call.id, call.function.name, call.function.arguments] for call in choice.message.tool_calls]


def one_tool_at_a_time():
    return len(chat("tools", tools=[GET_WEATHER], parallel_tool_calls=False).choices[0].message.tool_calls)


def tool_choices():
    named = {"type": "function", "function": {"name": "get_weather"}}
    for choice in ["none", "auto", "required", named]:
        chat("text", tools=[GET_WEATHER], tool_choice=choice)
    return "asked"


def parsed():
    answer = client.chat.completions.parse(**asking("object", response_format=Weather))
    return answer.choices[0].message.parsed.model_dump()


def parsed_of_a_stream():
    with client.chat.completions.stream(**asking("object", response_format=Weather)) as stream:
        return stream.get_final_completion().choices[0].message.parsed.model_dump()


def parsed_of_a_tool():
    tool = openai.pydantic_function_tool(Weather, name="get_weather")
    answer = client.chat.completions.parse(**asking("strict tool", tools=[tool]))
    return answer.choices[0].message.tool_calls[0].function.parsed_arguments.model_dump()


def vision():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
    return chat([{"type": "text", "text": "image"}, image]).choices[0].message.content


def thoughts():
    whole = chat("thoughts").choices[0].message
    deltas = [chunk.choices[0].delta for chunk in chat("thoughts", stream=True)]
    pieces = [delta.reasoning_content for delta in deltas if hasattr(delta, "reasoning_content")]
    return [whole.reasoning_content, whole.reasoning, "".join(pieces)]


def several():
    return [[choice.index, choice.message.content] for choice in chat("several", n=2).choices]


def logprobs():
    content = chat("logprobs", logprobs=True, top_logprobs=1).choices[0].logprobs.content
    return [[token.token, token.logprob, token.top_logprobs[0].token] for token in content]


def drawn():
    chat("drawn", seed=7, stop=["END"], temperature=0.4, presence_penalty=-0.5, max_completion_tokens=9)
    return "asked"


def embeddings():
    ask = {"model": "scripted:embed", "input": ["one", "two", "one"], "dimensions": 8}
    by_itself = demonstration.embeddings.create(**ask)
    floats = demonstration.embeddings.create(**ask, encoding_format="float").data
    sent = demonstration.embeddings.create(**ask, encoding_format="base64").data[0].embedding
    one, two, again = [each.embedding for each in by_itself.data]
    near = all(abs(a - b) < 1e-6 for a, b in zip(one, floats[0].embedding))
    return [len(one), one == again, one == two, near, len(base64.b64decode(sent)), by_itself.usage.prompt_tokens]


def continued():
    ask = {"model": MODEL, "prompt": ["One", "Two"], "n": 2}
    whole = client.completions.create(**ask, logprobs=1)
    pieces = ["", "", "", ""]
    for chunk in client.completions.create(**ask, echo=True, stream=True):
        for choice in chunk.choices:
            pieces[choice.index] += choice.text
    return [[choice.text for choice in whole.choices], whole.choices[0].logprobs.tokens, pieces]


def respond(question, **fields):
    return client.responses.create(model=MODEL, input=question, **fields)


def response_whole():
    answer = respond("text", instructions="Be kind.")
    details = [answer.usage.input_tokens_details.cached_tokens, answer.usage.output_tokens_details.reasoning_tokens]
    return [answer.output_text, answer.status, answer.usage.output_tokens, details]


def response_streamed():
    events = list(respond("thoughts", stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    return [text, [item.type for item in events[-1].response.output], events[-1].type]


def response_parsed():
    whole = client.responses.parse(model=MODEL, input="object", text_format=Weather).output_parsed
    with client.responses.stream(model=MODEL, input="object", text_format=Weather) as stream:
        streamed = stream.get_final_response().output_parsed
    return [whole.model_dump(), streamed.model_dump()]


def response_of_tools_to_the_end():
    tools = [{"type": "function", "strict": None, **GET_WEATHER["function"]}]
    question = [{"role": "user", "content": "tools"}]
    first = client.responses.create(model=MODEL, input=question, tools=tools)
    calls = [item for item in first.output if item.type == "function_call"]
    gave = [{"type": "function_call_output", "call_id": call.call_id, "output": "7 degrees"} for call in calls]
    last = client.responses.with_raw_response.create(model=MODEL, input=question + first.output + gave, tools=tools)
    return [[call.call_id for call in calls], last.parse().output_text, last.headers.get("x-trunkline-ignored")]


def ignored():
    answer = client.chat.completions.with_raw_response.create(**asking("text", user="ann", metadata={"team": "blue"}))
    return answer.headers.get("x-trunkline-ignored")


def errors():
    elsewhere = client.with_options(base_url="http://127.0.0.1:9/v1")
    return {
        "range": thrown(lambda: chat("text", temperature=3)),
        "audio": thrown(lambda: chat("text", modalities=["text", "audio"])),
        "key": thrown(lambda: client.with_options(api_key="sk-nonsense").models.list()),
        "model": thrown(lambda: client.models.retrieve("absent")),
        "url": thrown(lambda: client.fine_tuning.jobs.list()),
        "kept": thrown(lambda: client.responses.retrieve("resp_1")),
        "response": thrown(lambda: list(respond("failing in the middle", stream=True))),
        "method": thrown(lambda: client.models.delete(MODEL)),
        "runtime": thrown(lambda: chat("failing")),
        "time": thrown(lambda: chat("silence", sdk=client.with_options(timeout=0.3))),
        "nobody": thrown(lambda: elsewhere.models.list()),
        "stream": thrown(lambda: list(chat("failing in the middle", stream=True))),
    }


def left_by_a_break():
    with chat("silence after a word", stream=True) as stream:
        for chunk in stream:
            if chunk.choices[0].delta.content:
                break
    return "left"


def left_by_closing():
    stream = chat("silence after a word", stream=True)
    next(iter(stream))
    stream.close()
    return "left"


def retried():
    """The runtime fails once, and then does not."""
    return chat("failing once", sdk=client.with_options(max_retries=2)).choices[0].message.content


def not_retried():
    statuses = []
    hooks = {"response": [lambda response: statuses.append(response.status_code)]}
    watching = openai.DefaultHttpxClient(event_hooks=hooks)
    spent = client.with_options(api_key=os.environ["SPENT_KEY"], max_retries=2, http_client=watching)
    return [thrown(lambda: chat("text", sdk=spent)), statuses]


def retried_after_waiting():
    """The key may have one request under way, and has, until it is seen that another was refused."""
    holding = chat("silence after a word", sdk=narrow, stream=True)
    statuses = []

    def watch(response):
        statuses.append(response.status_code)
        holding.close()

    watching = openai.DefaultHttpxClient(event_hooks={"response": [watch]})
    text = chat("text", sdk=narrow.with_options(max_retries=1, http_client=watching)).choices[0].message.content
    return [text, statuses]


THINGS = [
    models,
    one_model,
    whole,
    streamed,
    roles,
    tools_to_the_end,
    tools_streamed,
    one_tool_at_a_time,
    tool_choices,
    parsed,
    parsed_of_a_stream,
    parsed_of_a_tool,
    vision,
    thoughts,
    several,
    logprobs,
    drawn,
    embeddings,
    continued,
    response_whole,
    response_streamed,
    response_parsed,
    response_of_tools_to_the_end,
    ignored,
    errors,
    left_by_a_break,
    left_by_closing,
    retried,
    not_retried,
    retried_after_waiting,
]

got = {}
for thing in THINGS:
    try:
        got[thing.__name__] = thing()
    except Exception as error:  # What went wrong is for the test to show.
        got[thing.__name__] = f"{type(error).__name__}: {error}"
json.dump(got, sys.stdout)
