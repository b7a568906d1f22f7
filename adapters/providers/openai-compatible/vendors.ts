/** How a vendor's wire departs from OpenAI's. */
export interface Quirks {
  /** Name of the field that limits the answer; `max_tokens` when absent. */
  readonly maxTokensField?: 'max_completion_tokens'
  /** Models, by the beginning of their id, that refuse a temperature. */
  readonly noTemperature?: readonly string[]
  /** It refuses `stream_options`; it then sends its usage unasked or not at all. */
  readonly noStreamOptions?: boolean
  /** What switches thinking on and off; for models whose id begins so, or all. */
  readonly thinking?: { readonly models?: readonly string[]; readonly on: object; readonly off: object }
  /** It has no list of models. */
  readonly noModels?: boolean
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
}
export interface Vendor extends Quirks {
  readonly name: string
  readonly title: string
  /** Variable with the key. Absent: it needs none. */
  readonly envVar?: string
  /** Absent: it has to be configured. */
  readonly baseUrl?: string
  readonly defaultModel: string
}

const reasoning = ['o1', 'o3', 'o4', 'gpt-5']
const effort = { models: reasoning, on: { reasoning_effort: 'high' }, off: { reasoning_effort: 'low' } }
const switched = { models: ['glm-4.5', 'glm-4.6'], on: { thinking: { type: 'enabled' } }, off: { thinking: { type: 'disabled' } } }

/** Every vendor that speaks OpenAI's chat completions. One more is one more row. */
export const vendors: readonly Vendor[] = [
  { name: 'openai', title: 'OpenAI', envVar: 'OPENAI_API_KEY', baseUrl: 'https://api.openai.com/v1', defaultModel: 'gpt-5-mini', maxTokensField: 'max_completion_tokens', noTemperature: reasoning, thinking: effort },
  { name: 'groq', title: 'Groq', envVar: 'GROQ_API_KEY', baseUrl: 'https://api.groq.com/openai/v1', defaultModel: 'llama-3.3-70b-versatile' },
  { name: 'deepseek', title: 'DeepSeek', envVar: 'DEEPSEEK_API_KEY', baseUrl: 'https://api.deepseek.com/v1', defaultModel: 'deepseek-chat' },
  { name: 'openrouter', title: 'OpenRouter', envVar: 'OPENROUTER_API_KEY', baseUrl: 'https://openrouter.ai/api/v1', defaultModel: 'openrouter/auto', headers: { 'x-title': 'svc' }, thinking: { on: { reasoning: { enabled: true } }, off: { reasoning: { enabled: false } } } },
  { name: 'mistral', title: 'Mistral', envVar: 'MISTRAL_API_KEY', baseUrl: 'https://api.mistral.ai/v1', defaultModel: 'mistral-small-latest', noStreamOptions: true },
  { name: 'together', title: 'Together AI', envVar: 'TOGETHER_API_KEY', baseUrl: 'https://api.together.xyz/v1', defaultModel: 'meta-llama/Llama-3.3-70B-Instruct-Turbo' },
  { name: 'fireworks', title: 'Fireworks AI', envVar: 'FIREWORKS_API_KEY', baseUrl: 'https://api.fireworks.ai/inference/v1', defaultModel: 'accounts/fireworks/models/llama-v3p3-70b-instruct' },
  { name: 'perplexity', title: 'Perplexity', envVar: 'PERPLEXITY_API_KEY', baseUrl: 'https://api.perplexity.ai', defaultModel: 'sonar', noStreamOptions: true, noModels: true },
  { name: 'cerebras', title: 'Cerebras', envVar: 'CEREBRAS_API_KEY', baseUrl: 'https://api.cerebras.ai/v1', defaultModel: 'llama-3.3-70b' },
  { name: 'sambanova', title: 'SambaNova', envVar: 'SAMBANOVA_API_KEY', baseUrl: 'https://api.sambanova.ai/v1', defaultModel: 'Meta-Llama-3.3-70B-Instruct' },
  { name: 'huggingface', title: 'Hugging Face', envVar: 'HF_API_KEY', baseUrl: 'https://router.huggingface.co/v1', defaultModel: 'meta-llama/Llama-3.3-70B-Instruct' },
  { name: 'xai', title: 'xAI', envVar: 'XAI_API_KEY', baseUrl: 'https://api.x.ai/v1', defaultModel: 'grok-4' },
  { name: 'moonshot', title: 'Moonshot AI', envVar: 'MOONSHOT_API_KEY', baseUrl: 'https://api.moonshot.ai/v1', defaultModel: 'kimi-k2-0905-preview' },
  { name: 'qwen', title: 'Qwen', envVar: 'DASHSCOPE_API_KEY', baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1', defaultModel: 'qwen-plus', thinking: { models: ['qwen-', 'qwen3'], on: { enable_thinking: true }, off: { enable_thinking: false } } },
  { name: 'minimax', title: 'MiniMax', envVar: 'MINIMAX_API_KEY', baseUrl: 'https://api.minimax.io/v1', defaultModel: 'MiniMax-M2', noModels: true },
  { name: 'zhipu', title: 'Zhipu AI', envVar: 'ZHIPU_API_KEY', baseUrl: 'https://open.bigmodel.cn/api/paas/v4', defaultModel: 'glm-4.6', noModels: true, thinking: switched },
  { name: 'zai', title: 'Z.ai', envVar: 'ZAI_API_KEY', baseUrl: 'https://api.z.ai/api/paas/v4', defaultModel: 'glm-4.6', noModels: true, thinking: switched },
  { name: 'nvidia-nim', title: 'NVIDIA NIM', envVar: 'NVIDIA_API_KEY', baseUrl: 'https://integrate.api.nvidia.com/v1', defaultModel: 'meta/llama-3.3-70b-instruct' },
  { name: 'novita', title: 'Novita AI', envVar: 'NOVITA_API_KEY', baseUrl: 'https://api.novita.ai/v3/openai', defaultModel: 'deepseek/deepseek-v3-0324' },
  { name: 'deepinfra', title: 'DeepInfra', envVar: 'DEEPINFRA_API_KEY', baseUrl: 'https://api.deepinfra.com/v1/openai', defaultModel: 'meta-llama/Llama-3.3-70B-Instruct' },
  { name: 'ollama', title: 'Ollama', baseUrl: 'http://127.0.0.1:11434/v1', defaultModel: 'llama3.2' },
  { name: 'vllm', title: 'vLLM', baseUrl: 'http://127.0.0.1:8000/v1', defaultModel: 'default' },
  { name: 'lmstudio', title: 'LM Studio', baseUrl: 'http://127.0.0.1:1234/v1', defaultModel: 'default' },
  { name: 'openai-compatible', title: 'Any OpenAI-compatible service', defaultModel: 'default' },
]
