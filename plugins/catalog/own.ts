import type { Entry, TimedPrice } from './data.ts'

/**
 * Our rows override the packages, and fill in what they lack. Fields that a row leaves out come from the packages, or
 * are unknown.
 */
export type OwnRow = Pick<Entry, 'provider' | 'id'> &
  Partial<Entry> & {
    /** Where the figures are from. */
    readonly source: string
    /** When that was read. */
    readonly read: string
  }

const free: readonly TimedPrice[] = [{ input: 0, output: 0 }]
const weekdayPeak = {
  minutes: [
    [60, 240],
    [360, 600],
  ] satisfies [number, number][],
  weekdays: true,
} as const
const flash = {
  prices: [
    { input: 0.15, output: 0.6, cachedInput: 0.003 },
    { ...weekdayPeak, input: 0.3, output: 1.2, cachedInput: 0.006 },
  ],
}
const deepseek = {
  context: 1_000_000,
  output: 384_000,
  tools: true,
  thinking: true,
  source: 'https://api-docs.deepseek.com/quick_start/pricing',
  read: '2026-11-15',
}
const claude = { tools: true, vision: true, thinking: true, context: 1_000_000, output: 128_000 }
const cohere = {
  provider: 'cohere',
  tools: true,
  vision: false,
  source: 'https://docs.cohere.com/docs/models',
  read: '2026-06-01',
}
const jamba = {
  provider: 'ai21',
  tools: true,
  vision: false,
  thinking: false,
  context: 256_000,
  source: 'https://docs.ai21.com/docs/jamba-foundation-models',
  read: '2025-10-01',
}
const qwen = {
  provider: 'qwen',
  tools: true,
  source: 'https://www.alibabacloud.com/help/en/model-studio/models',
  read: '2026-03-18',
}
const unpriced = { tools: true, source: "the provider's default model", read: '2026-11-20' }

const claudeCode = {
  ...unpriced,
  provider: 'claude-code',
  tools: false,
  vision: false,
  thinking: true,
  context: 200_000,
  source: 'https://code.claude.com/docs/en/model-config',
}

const nim = {
  provider: 'nvidia-nim',
  tools: true,
  vision: false,
  context: 131_072,
  source: 'https://build.nvidia.com/models',
  read: '2025-10-01',
}

export const own: readonly OwnRow[] = [
  {
    provider: 'builtin',
    id: 'offline',
    name: 'Built-in offline model',
    tools: true,
    vision: false,
    thinking: false,
    context: 128_000,
    prices: [...free],
    source: 'adapters/providers/builtin',
    read: '2026-11-20',
  },
  // Chinese public holidays are off-peak too; on those days peak hours are priced too high here.
  { provider: 'deepseek', id: 'deepseek-flash', name: 'DeepSeek Flash', vision: true, ...flash, ...deepseek },
  {
    provider: 'deepseek',
    id: 'deepseek-v4-flash',
    name: 'DeepSeek V4 Flash (now served by Flash)',
    vision: true,
    ...flash,
    ...deepseek,
  },
  {
    provider: 'deepseek',
    id: 'deepseek-v4-pro',
    name: 'DeepSeek V4 Pro',
    vision: false,
    prices: [
      { input: 0.66, output: 1.98, cachedInput: 0.022 },
      { ...weekdayPeak, input: 1.32, output: 3.96, cachedInput: 0.044 },
    ],
    ...deepseek,
  },
  {
    provider: 'anthropic',
    id: 'claude-sonnet-5-5',
    name: 'Claude Sonnet 5.5',
    prices: [
      { input: 2, output: 10, cachedInput: 0.2, cacheWrite: 2.5 },
      { from: '2026-10-07', input: 2, output: 10, cachedInput: 0.1, cacheWrite: 2.5 },
    ],
    ...claude,
    source: 'https://platform.claude.com/docs/en/about-claude/pricing',
    read: '2026-10-24',
  },
  {
    provider: 'anthropic',
    id: 'claude-haiku-5-5',
    name: 'Claude Haiku 5.5',
    ...claude,
    source: 'https://platform.claude.com/docs/en/models/haiku-5-5/overview',
    read: '2026-10-24',
    prices: [
      {
        input: 0.1,
        output: 0.5,
        cachedInput: 0.01,
        cacheWrite: 0.125,
        long: { aboveInput: 100_000, input: 0.5, output: 2.5, cachedInput: 0.05, cacheWrite: 0.625 },
      },
    ],
  },
  {
    provider: 'openai',
    id: 'gpt-6.1-terra',
    name: 'GPT-6.1 Terra',
    tools: true,
    vision: true,
    thinking: true,
    context: 1_050_000,
    output: 128_000,
    prices: [{ input: 1, output: 5, cachedInput: 0.05, cacheWrite: 1.25 }],
    source: 'https://developers.openai.com/api/docs/pricing',
    read: '2026-10-27',
  },
  {
    provider: 'gemini',
    id: 'gemini-3.8-flash',
    prices: [
      { input: 0.75, output: 3.75, cachedInput: 0.075 },
      { from: '2027-01-01', input: 1.5, output: 7.5, cachedInput: 0.15 },
    ],
    source: 'https://ai.google.dev/gemini-api/docs/pricing',
    read: '2026-09-20',
  },
  {
    provider: 'gemini',
    id: 'gemini-3.1-pro-preview',
    context: 1_048_576,
    output: 65_536,
    source: 'https://ai.google.dev/gemini-api/docs/models',
    read: '2026-09-20',
  },
  // The 1M window was retired on 2026-04-30, and its prices with it.
  {
    provider: 'anthropic',
    id: 'claude-sonnet-4-5',
    prices: [{ input: 3, output: 15, cachedInput: 0.3, cacheWrite: 3.75 }],
    output: 64_000,
    source: 'https://platform.claude.com/docs/en/about-claude/pricing',
    read: '2026-09-01',
  },
  {
    ...cohere,
    id: 'command-a-03-2025',
    name: 'Command A',
    thinking: false,
    context: 256_000,
    output: 8000,
    prices: [{ input: 2.5, output: 10 }],
  },
  {
    ...cohere,
    id: 'command-a-reasoning-08-2025',
    name: 'Command A Reasoning',
    thinking: true,
    context: 256_000,
    output: 32_000,
    prices: [{ input: 2.5, output: 10 }],
  },
  {
    ...cohere,
    id: 'command-r-08-2024',
    name: 'Command R',
    thinking: false,
    context: 128_000,
    output: 4000,
    prices: [{ input: 0.15, output: 0.6 }],
  },
  {
    ...cohere,
    id: 'command-r-plus-08-2024',
    name: 'Command R+',
    thinking: false,
    context: 128_000,
    output: 4000,
    prices: [{ input: 2.5, output: 10 }],
  },
  {
    ...cohere,
    id: 'command-r7b-12-2024',
    name: 'Command R7B',
    thinking: false,
    context: 128_000,
    output: 4000,
    prices: [{ input: 0.0375, output: 0.15 }],
  },
  { ...jamba, id: 'jamba-large', name: 'Jamba Large' },
  { ...jamba, id: 'jamba-mini', name: 'Jamba Mini' },
  { ...qwen, id: 'qwen-plus', name: 'Qwen Plus', vision: false, thinking: true },
  { ...qwen, id: 'qwen-max', name: 'Qwen Max', vision: false },
  { ...qwen, id: 'qwen3-max', name: 'Qwen3 Max', vision: false, context: 262_144, output: 65_536 },
  { ...qwen, id: 'qwen-flash', name: 'Qwen Flash', vision: false, thinking: true, context: 1_000_000, output: 32_768 },
  { ...qwen, id: 'qwen3-coder-plus', name: 'Qwen3 Coder Plus', vision: false, thinking: false },
  // The registry has them without their maker, which the API does not take, and with the price of the trial.
  { ...nim, id: 'meta/llama-3.3-70b-instruct', name: 'Llama 3.3 70B Instruct', thinking: false },
  { ...nim, id: 'nvidia/llama-3.1-nemotron-ultra-253b-v1', name: 'Llama 3.1 Nemotron Ultra 253B', thinking: true },
  { ...nim, id: 'nvidia/llama-3.3-nemotron-super-49b-v1.5', name: 'Llama 3.3 Nemotron Super 49B v1.5', thinking: true },
  {
    ...unpriced,
    provider: 'sambanova',
    id: 'Meta-Llama-3.3-70B-Instruct',
    name: 'Llama 3.3 70B Instruct',
    vision: false,
    thinking: false,
    context: 131_072,
  },
  {
    ...unpriced,
    provider: 'huggingface',
    id: 'meta-llama/Llama-3.3-70B-Instruct',
    name: 'Llama 3.3 70B Instruct',
    vision: false,
    thinking: false,
    context: 131_072,
  },
  // It costs what the model costs that it chooses.
  { ...unpriced, provider: 'openrouter', id: 'openrouter/auto', name: 'Auto Router' },
  {
    ...unpriced,
    provider: 'qianfan',
    id: 'ernie-4.5-turbo-128k',
    name: 'ERNIE 4.5 Turbo 128K',
    vision: false,
    thinking: false,
    context: 128_000,
  },
  {
    ...unpriced,
    provider: 'volcengine',
    id: 'doubao-seed-1-6-250615',
    name: 'Doubao Seed 1.6',
    vision: true,
    thinking: true,
    context: 256_000,
  },
  {
    ...unpriced,
    provider: 'replicate',
    id: 'meta/meta-llama-3-70b-instruct',
    name: 'Llama 3 70B Instruct',
    tools: false,
    vision: false,
    thinking: false,
  },
  { ...unpriced, provider: 'zhipu', id: 'glm-4.6', name: 'GLM-4.6', vision: false, thinking: true, context: 200_000 },
  { ...unpriced, provider: 'zai', id: 'glm-4.6', name: 'GLM-4.6', vision: false, thinking: true, context: 200_000 },
  // What it costs is between the program's user and the vendor.
  { ...claudeCode, id: 'sonnet', name: 'Claude Sonnet through Claude Code' },
  { ...claudeCode, id: 'opus', name: 'Claude Opus through Claude Code' },
  { ...claudeCode, id: 'haiku', name: 'Claude Haiku through Claude Code' },
  {
    ...unpriced,
    provider: 'ollama',
    id: 'llama3.2',
    name: 'Llama 3.2',
    vision: false,
    thinking: false,
    context: 131_072,
    prices: [...free],
  },
]

/**
 * What is true of every model of a family, by the last part of its id; for models of which the packages know only the
 * price.
 */
export const families: readonly {
  readonly ids: RegExp
  readonly tools: boolean | null
  readonly vision: boolean | null
  readonly thinking: boolean | null
  readonly output?: number
}[] = [
  {
    ids: /^claude-(haiku|sonnet|opus|fable)-[5-9]|^claude-(opus|sonnet)-4-[678]/,
    tools: true,
    vision: true,
    thinking: true,
    output: 128_000,
  },
  { ids: /^claude-(haiku|sonnet|opus)-4/, tools: true, vision: true, thinking: true, output: 64_000 },
  { ids: /^gpt-[5-9].*chat/, tools: null, vision: true, thinking: false },
  { ids: /^gpt-[5-9]/, tools: true, vision: true, thinking: true, output: 128_000 },
  { ids: /^gpt-4(o|\.1)/, tools: true, vision: true, thinking: false },
  { ids: /^gpt-oss/, tools: true, vision: false, thinking: true },
  { ids: /^o[1-9]/, tools: null, vision: null, thinking: true },
  { ids: /^gemini-(2\.5|[3-9])/, tools: true, vision: true, thinking: true, output: 65_536 },
  { ids: /^grok-4\.[3-9]/, tools: true, vision: true, thinking: true },
  { ids: /^deepseek-v4/, tools: true, vision: false, thinking: true },
]
