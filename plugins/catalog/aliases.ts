/** A model and its provider. */
export interface Target {
  readonly provider: string
  readonly model: string
}

/**
 * Built-in short names (API facts 2.9), as `provider/model`. They follow the newest model of a family; an agent that
 * must not change names the model itself, or is in mode Stable.
 */
const table: Readonly<Record<string, string>> = {
  sonnet: 'anthropic/claude-sonnet-5-5',
  'claude-sonnet': 'anthropic/claude-sonnet-5-5',
  'claude-code': 'anthropic/claude-sonnet-5-5',
  opus: 'anthropic/claude-opus-5-5',
  'claude-opus': 'anthropic/claude-opus-5-5',
  haiku: 'anthropic/claude-haiku-5-5',
  'claude-haiku': 'anthropic/claude-haiku-5-5',
  gpt4: 'openai/gpt-4o',
  gpt4o: 'openai/gpt-4o',
  'gpt4-mini': 'openai/gpt-4o-mini',
  gpt5: 'openai/gpt-5',
  'gpt5-mini': 'openai/gpt-5-mini',
  codex: 'openai/gpt-5.3-codex',
  flash: 'gemini/gemini-2.5-flash',
  'gemini-flash': 'gemini/gemini-2.5-flash',
  'gemini-pro': 'gemini/gemini-2.5-pro',
  deepseek: 'deepseek/deepseek-flash',
  'deepseek-v3': 'deepseek/deepseek-flash',
  'deepseek-r1': 'deepseek/deepseek-v4-pro',
  llama: 'groq/llama-3.3-70b-versatile',
  'llama-70b': 'groq/llama-3.3-70b-versatile',
  mixtral: 'mistral/open-mixtral-8x22b',
  mistral: 'mistral/mistral-large-latest',
  codestral: 'mistral/codestral-latest',
  grok: 'xai/grok-4.5',
  'grok-4': 'xai/grok-4',
  grok3: 'xai/grok-3',
  'grok-mini': 'xai/grok-3-mini',
  'grok-fast': 'xai/grok-3-fast',
  sonar: 'perplexity/sonar',
  'command-r': 'cohere/command-r-08-2024',
  command: 'cohere/command-a-03-2025',
  jamba: 'ai21/jamba-large',
  copilot: 'github-copilot/gpt-4.1',
  'copilot-4o': 'github-copilot/gpt-4o',
  qwen: 'qwen/qwen-plus',
  'qwen-code': 'qwen/qwen3-coder-plus',
  glm: 'zhipu/GLM-5.2',
  codegeex: 'zhipu/glm-4.6',
  ernie: 'qianfan/ernie-4.5-turbo-128k',
  doubao: 'volcengine/doubao-seed-1-6-250615',
  kimi: 'moonshot/kimi-k3',
  moonshot: 'moonshot/moonshot-v1-128k',
  minimax: 'minimax/MiniMax-M2.7',
  'minimax-highspeed': 'minimax/MiniMax-M2.7-highspeed',
  stepfun: 'openrouter/stepfun/step-3.5-flash',
  nemotron: 'nvidia-nim/nvidia/llama-3.1-nemotron-ultra-253b-v1',
  free: 'builtin/offline',
}

function toTarget(text: string): Target {
  const slash = text.indexOf('/')
  return { provider: text.slice(0, slash), model: text.slice(slash + 1) }
}
export const aliases: ReadonlyMap<string, Target> = new Map(
  Object.entries(table).map(([alias, text]) => [alias, toTarget(text)]),
)
