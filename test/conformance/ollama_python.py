"""What users of Ollama's Python package write, changed in nothing but host and key.

Each function is one thing that they do. All of them run, one after the other, and what they got is printed as one
line of JSON, by their names.
"""

import asyncio
import json
import os

import ollama

HOST, KEY = os.environ["TRUNKLINE_ORIGIN"], os.environ["CHAT_KEY"]
MODEL = "scripted"
HEADERS = {"Authorization": f"Bearer {KEY}"}
client = ollama.Client(host=HOST, headers=HEADERS)
PIXEL = "iVBORw0KGgo="


def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: The city.
    """
    return f"7 degrees in {city}"


def says(content, **fields):
    return {"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}


def text(answer):
    return answer.message.content


def thrown(ask):
    try:
        ask()
    except ollama.ResponseError as error:
        return [error.status_code, error.error]
    return None


def models():
    listed = client.list().models
    shown = client.show(MODEL)
    loaded = client.ps().models
    return [[each.model for each in listed], shown.capabilities, shown.modelinfo["unknown.context_length"], len(loaded)]


def chats():
    whole = client.chat(**says("/script tokens=3 nonce=abc"))
    parts = list(client.chat(**says("/script tokens=3 nonce=abc"), stream=True))
    return [text(whole), "".join(text(each) for each in parts), parts[-1].done_reason, parts[-1].eval_count]


def key_of_the_environment():
    os.environ["OLLAMA_API_KEY"] = KEY
    return text(ollama.Client(host=HOST).chat(**says("/script tokens=1")))


async def asynchronous():
    other = ollama.AsyncClient(host=HOST, headers=HEADERS)
    return [text(each) async for each in await other.chat(**says("/script tokens=2"), stream=True)]


def thoughts():
    answer = client.chat(**says("/script tokens=1 think=2"), think=True)
    return [answer.message.thinking, text(answer)]


def tools():
    asked = says('/script tokens=0 tool=get_weather args={"city":"Oslo"}')
    first = client.chat(**asked, tools=[get_weather])
    [call] = first.message.tool_calls
    result = {"role": "tool", "tool_name": call.function.name, "content": get_weather(**call.function.arguments)}
    second = client.chat(model=MODEL, messages=[*asked["messages"], first.message, result], tools=[get_weather])
    return [call.function.arguments, second.done_reason]


def prompts():
    whole = client.generate(MODEL, "/script tokens=2")
    raw = client.generate(MODEL, "/script tokens=2", raw=True)
    parts = [each.response for each in client.generate(MODEL, "/script tokens=2", stream=True)]
    return [whole.response, raw.response, "".join(parts)]


def vectors():
    several = client.embed("scripted:embed", ["blue", "sky"])
    one = client.embeddings("scripted:embed", "blue")
    return [len(several.embeddings), several.prompt_eval_count, list(one.embedding) == list(several.embeddings[0])]


def refusals():
    nobody = ollama.Client(host=HOST, headers={"Authorization": "Bearer nonsense"})
    return [
        thrown(nobody.list),
        thrown(lambda: client.chat("nobody", [])),
        thrown(lambda: client.pull("a")),
        thrown(lambda: client.delete("a")),
        thrown(lambda: client.copy("a", "b")),
        thrown(lambda: client.create("a", from_="b")),
        thrown(lambda: client.push("a")),
        thrown(lambda: client.generate("scripted:plain", "What is it?", images=[PIXEL])),
    ]


calls = [models, chats, key_of_the_environment, thoughts, tools, prompts, vectors, refusals]
got = {call.__name__: call() for call in calls}
print(json.dumps({**got, "asynchronous": asyncio.run(asynchronous())}))
