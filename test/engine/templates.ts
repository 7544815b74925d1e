/** A template in the manner of many models: thoughts in `<think>`, calls as JSON in `<tool_call>`. */
export const thinkingTemplate = `{%- if tools -%}
<|system|>You may call: {% for tool in tools %}{{ tool | tojson }}{% endfor %}<|end|>
{%- endif -%}
{%- for message in messages -%}
{%- if message.role != 'assistant' -%}<|{{ message.role }}|>
{%- elif messages[loop.index0 - 1].role == 'tool' -%}<|after-tool|>
{%- elif tools -%}<|with-tools|>
{%- else -%}<|assistant|>
{%- endif -%}
{%- if message.role == 'assistant' and message.reasoning_content -%}<think>{{ message.reasoning_content }}</think>{%- endif -%}
{{ message.content }}
{%- for call in message.tool_calls or [] -%}
{%- if message.content or not loop.first %}
{% endif -%}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor -%}
<|end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}`;
