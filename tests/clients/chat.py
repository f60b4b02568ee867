"""The openai package, as it comes from PyPI, against a broker. Prints one JSON object a line.

chat.py both URL KEY MODEL PROMPT SEED      the same question without and with streaming
chat.py stream URL KEY MODEL PROMPT SEED    each piece of a long answer as it comes, then how it ended
chat.py errors URL KEY MODEL POOR_KEY       what the package raises
"""

import json
import sys

import openai


def say(value):
    print(json.dumps(value), flush=True)


def question(model, prompt, seed, tokens):
    return dict(
        model=model,
        messages=[{"role": "user", "content": prompt}],
        seed=int(seed),
        max_tokens=tokens,
        temperature=0.8,
    )


def both(client, model, prompt, seed):
    asked = question(model, prompt, seed, 48)
    plain = client.chat.completions.create(**asked)
    pieces, finish, usage = [], None, None
    for chunk in client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **asked):
        if chunk.choices:
            pieces.append(chunk.choices[0].delta.content or "")
            finish = chunk.choices[0].finish_reason or finish
        usage = chunk.usage or usage
    other = client.chat.completions.create(**question(model, prompt, int(seed) + 1, 48))
    say(
        {
            "plain": plain.choices[0].message.content,
            "plain_finish": plain.choices[0].finish_reason,
            "plain_tokens": plain.usage.completion_tokens,
            "streamed": "".join(pieces),
            "streamed_finish": finish,
            "streamed_tokens": usage.completion_tokens,
            "other_seed": other.choices[0].message.content,
        }
    )


def stream(client, model, prompt, seed):
    asked = question(model, prompt, seed, 400)
    try:
        for chunk in client.chat.completions.create(stream=True, logit_bias={"0": -100, "2": -100}, **asked):
            if chunk.choices and chunk.choices[0].delta.content:
                say({"text": chunk.choices[0].delta.content})
            if chunk.choices and chunk.choices[0].finish_reason:
                say({"finish": chunk.choices[0].finish_reason})
    except openai.OpenAIError as error:
        say({"raised": type(error).__name__})


def errors(client, model, poor_key):
    def raised(client, **changes):
        asked = question(model, "Hello", 1, 8) | changes
        try:
            client.chat.completions.create(**asked)
        except openai.APIStatusError as error:
            return [type(error).__name__, error.status_code]
        return None

    say(
        {
            "wrong key": raised(client.with_options(api_key="wk-wrong")),
            "no money": raised(client.with_options(api_key=poor_key)),
            "no such model": raised(client, model="no-such-model"),
            "bad value": raised(client, temperature=9),
            "too long": raised(client, messages=[{"role": "user", "content": "word " * 20000}]),
        }
    )


def main():
    task, url, key, *rest = sys.argv[1:]
    client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0, timeout=120)
    {"both": both, "stream": stream, "errors": errors}[task](client, *rest)


main()
