"""What users of Anthropic's Python SDK write, changed in nothing but base URL and key.

Each function is one thing that they do. All of them run, one after the other, and what they got is printed as one
line of JSON, by their names.
"""

import json
import os
import sys

import anthropic
from anthropic import beta_tool
from pydantic import BaseModel

MODEL = os.environ["CHAT_MODEL"]
client = anthropic.Anthropic(max_retries=0)


class Weather(BaseModel):
    city: str
    degrees: int


GET_WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}


def asking(question, **fields):
    return {"model": MODEL, "max_tokens": 64, "messages": [{"role": "user", "content": question}], **fields}


def message(question, sdk=client, **fields):
    return sdk.messages.create(**asking(question, **fields))


def thrown(ask):
    try:
        ask()
    except anthropic.APIError as error:
        told = {"as": type(error).__name__}
        if isinstance(error.body, dict):
            told |= {"type": error.body["error"]["type"], "code": error.body["error"]["code"]}
        if isinstance(error, anthropic.APIStatusError):
            told |= {"status": error.status_code, "request": (error.request_id or "")[:4]}
        return told
    return "nothing was thrown"


def models():
    return [[model.id, model.type] for model in client.models.list()]


def one_model():
    return client.models.retrieve(MODEL).id


def whole():
    answer = message("text", system="Be kind.")
    return [answer.content[0].text, answer.stop_reason, answer.usage.output_tokens]


def streamed():
    with client.messages.stream(**asking("text")) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    return [text, final.content[0].text, final.stop_reason, final.usage.output_tokens]


def events():
    return [event.type for event in message("text", stream=True)]


def tools_to_the_end():
    messages = [{"role": "user", "content": "tools"}]
    calling = client.messages.create(model=MODEL, max_tokens=64, messages=messages, tools=[GET_WEATHER])
    messages.append({"role": "assistant", "content": calling.content})
    called = [block for block in calling.content if block.type == "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"7 degrees in {block.input['city']}"}
        for block in called
    ]
    messages.append({"role": "user", "content": results})
    last = client.messages.create(model=MODEL, max_tokens=64, messages=messages, tools=[GET_WEATHER])
    return [calling.stop_reason, [block.id for block in called], last.content[0].text]


def tools_streamed():
    with client.messages.stream(**asking("tools", tools=[GET_WEATHER])) as stream:
        content = stream.get_final_message().content
    return [[block.id, block.name, block.input] for block in content]


def tools_by_the_runner():
    asked = []

    @beta_tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return "7 degrees"

    last = client.beta.messages.tool_runner(**asking("tools", tools=[get_weather])).until_done()
    return [asked, last.content[0].text]


def tool_choices():
    for choice in [{"type": "none"}, {"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "get_weather"}]:
        message("text", tools=[GET_WEATHER], tool_choice=choice)
    return "asked"


def parsed():
    return client.messages.parse(**asking("object", output_format=Weather)).parsed_output.model_dump()


def vision():
    return message([{"type": "text", "text": "image"}, PIXEL]).content[0].text


def thoughts():
    first = message("thoughts", thinking={"type": "enabled", "budget_tokens": 1024}).content
    messages = [
        {"role": "user", "content": "thoughts"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "text"},
    ]
    client.messages.create(model=MODEL, max_tokens=64, messages=messages)
    with client.messages.stream(**asking("thoughts")) as stream:
        streamed = stream.get_final_message().content
    return [[block.type for block in first], first[0].thinking, streamed[0].thinking]


def counted():
    answer = client.messages.with_raw_response.count_tokens(
        model=MODEL, messages=[{"role": "user", "content": "word " * 400}]
    )
    return answer.parse().input_tokens > 300


def ignored():
    answer = client.messages.with_raw_response.create(**asking("text", metadata={"user_id": "me"}))
    return answer.headers["x-trunkline-ignored"]


def errors():
    base = os.environ["ANTHROPIC_BASE_URL"]
    wrong = anthropic.Anthropic(api_key="nonsense", max_retries=0)
    nobody = anthropic.Anthropic(base_url="http://127.0.0.1:9", max_retries=0)
    elsewhere = anthropic.Anthropic(base_url=f"{base}/nowhere", max_retries=0)
    return {
        "range": thrown(lambda: message("text", max_tokens=0)),
        "block": thrown(lambda: message([{"type": "video"}])),
        "key": thrown(lambda: message("text", sdk=wrong)),
        "model": thrown(lambda: message("text", model="nobody-has-it")),
        "url": thrown(lambda: message("text", sdk=elsewhere)),
        "runtime": thrown(lambda: message("failing")),
        "nobody": thrown(lambda: message("text", sdk=nobody)),
        "stream": thrown(lambda: list(message("failing in the middle", stream=True))),
    }


def retried():
    return client.with_options(max_retries=2).messages.create(**asking("failing once")).content[0].text


def left_by_closing():
    with client.messages.stream(**asking("silence after a word")) as stream:
        for event in stream:
            if event.type == "text":
                break
    return "left"


def bearer():
    by_token = anthropic.Anthropic(auth_token=os.environ["ANTHROPIC_API_KEY"], api_key=None)
    return message("text", sdk=by_token).content[0].text


TRIED = [
    models, one_model, whole, streamed, events, tools_to_the_end, tools_streamed, tools_by_the_runner, tool_choices,
    parsed, vision, thoughts, counted, ignored, errors, retried, left_by_closing, bearer,
]  # fmt: skip


def outcome(tried):
    try:
        return tried()
    except Exception as error:
        print(f"{tried.__name__}: {error!r}", file=sys.stderr)
        return f"{type(error).__name__}: {error}"


print(json.dumps({tried.__name__: outcome(tried) for tried in TRIED}))
