import * as v from 'valibot'
import { commandLine, isObject, passed, warned } from 'svc/cli'
import type { Check, CheckContext, DaemonClient } from 'svc/cli'

/** Variables of vendors that are usual; the daemon knows all that it can use. */
const KEY_VARIABLES = [
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  'GROQ_API_KEY',
  'MISTRAL_API_KEY',
  'DEEPSEEK_API_KEY',
  'OPENROUTER_API_KEY',
  'TOGETHER_API_KEY',
  'XAI_API_KEY',
  'FIREWORKS_API_KEY',
  'CEREBRAS_API_KEY',
  'PERPLEXITY_API_KEY',
  'COHERE_API_KEY',
]

const Status = v.looseObject({
  default_provider: v.nullish(v.string()),
  default_model: v.nullish(v.string()),
  default_problem: v.nullish(v.string()),
})
type Status = v.InferOutput<typeof Status>

/** Whether a model can answer. Asks a running daemon: only it knows the stored keys. */
const check: Check = async (context) => {
  const status = context.daemon && (await readStatus(context.daemon))
  if (status?.default_problem)
    return warned(
      `the default model cannot be used: ${status.default_problem}`,
      'see that its address is reached, or correct default_provider and default_model',
    )
  const found = status ? describeDefault(status) : listKeys(context)
  if (found !== undefined) return passed(found)
  const where = context.daemon ? '' : ' in the environment or the configuration; the daemon knows whether one is stored'
  return warned(
    `no key of a model provider${where}; a local Ollama answers, or else the built-in offline model`,
    `store one with ${commandLine('providers set-key openai')}, or set OPENAI_API_KEY (or a sibling), ` +
      'or api_key under [providers.<name>]',
  )
}
export default check

async function readStatus(daemon: DaemonClient): Promise<Status | undefined> {
  try {
    return await daemon.call('GET', '/api/status', Status, { timeoutMs: 5000 })
  } catch {
    return undefined /* The check of the database reports a daemon that does not answer. */
  }
}
function describeDefault({ default_provider: provider, default_model: model }: Status): string | undefined {
  return provider && provider !== 'builtin' ? `${provider} / ${model ?? ''} answers` : undefined
}
function listKeys({ config, env }: CheckContext): string | undefined {
  const found = [
    ...KEY_VARIABLES.filter((name) => env[name]?.trim()),
    ...Object.entries(isObject(config['providers']) ? config['providers'] : {})
      .filter(([, provider]) => isObject(provider) && String(provider['api_key'] ?? '').trim() !== '')
      .map(([name]) => `[providers.${name}]`),
  ]
  return found.length > 0 ? `keys: ${found.join(', ')}` : undefined
}
