import { openBedrock } from '../support/bedrock-stage.ts'
import { openAnthropic } from '../support/anthropic-stage.ts'
import { openCohere } from '../support/cohere-stage.ts'
import { openGemini, openVertex } from '../support/gemini-stage.ts'
import { openBuiltin, openCompatible, openVendor } from '../support/provider-stage.ts'
import { openProgram } from '../support/program-stage.ts'
import { openReplicate } from '../support/replicate-stage.ts'
import { openResponses } from '../support/responses-stage.ts'
import type { Offer, ProviderStage } from './provider.ts'

interface Row {
  readonly name: string
  readonly open: () => Promise<ProviderStage>
  readonly network: boolean
  readonly offers?: readonly Offer[]
  readonly lacks?: readonly string[]
}

/** Programs are offered no tools, and do not tell how long the vendor wants to be left alone. */
const noCalls = ['call', 'parallel-calls', 'thinking-calls', 'status-429-seconds', 'status-429-date']
const noThinking = ['thinking', 'thinking-calls', 'thinking-stays']
/**
 * Every driver with the stage it is tested on; one more driver is one more row. `network`: there is a provider behind
 * it. `lacks`: checks of something its vendor does not have.
 */
export const drivers: readonly Row[] = [
  { name: 'builtin', open: openBuiltin, network: false, offers: ['models'] },
  {
    name: 'openai-compatible',
    open: openCompatible,
    network: true,
    offers: ['models', 'embed', 'images', 'speech', 'transcription'],
  },
  { name: 'groq', open: () => openVendor('groq'), network: true, offers: ['models', 'transcription'] },
  { name: 'azure', open: () => openVendor('azure', 'azure'), network: true, offers: ['embed'] },
  {
    name: 'azure by deployment',
    open: () => openVendor('azure', 'azure-deployment', { api_version: '2024-10-21' }),
    network: true,
    offers: ['embed'],
  },
  { name: 'github-copilot', open: () => openVendor('github-copilot', 'copilot'), network: true, offers: ['models'] },
  { name: 'deepseek', open: () => openVendor('deepseek', 'deepseek'), network: true, offers: ['models', 'replay'] },
  {
    name: 'openrouter',
    open: () => openVendor('openrouter', 'openrouter'),
    network: true,
    offers: ['models', 'embed', 'replay'],
  },
  {
    name: 'mistral',
    open: () => openVendor('mistral', 'mistral'),
    network: true,
    offers: ['models', 'embed', 'transcription'],
  },
  { name: 'anthropic', open: openAnthropic, network: true, offers: ['models', 'replay'] },
  {
    name: 'anthropic, a model that always thinks',
    open: () => openAnthropic('claude-opus-5-5'),
    network: true,
    offers: ['models', 'replay'],
  },
  { name: 'bedrock', open: openBedrock, network: true, offers: ['models', 'replay'] },
  {
    name: 'bedrock with a Bedrock API key, a model that always thinks',
    open: () => openBedrock('global.anthropic.claude-opus-5-5', 'test-key'),
    network: true,
    offers: ['models', 'replay'],
  },
  { name: 'gemini', open: openGemini, network: true, offers: ['models', 'embed', 'replay', 'images'] },
  { name: 'gemini without ids and signatures', open: () => openGemini('gemini-2.5-flash'), network: true },
  { name: 'vertex-ai', open: openVertex, network: true, offers: ['models', 'embed', 'images'] },
  { name: 'cohere', open: openCohere, network: true, offers: ['models', 'embed', 'replay'], lacks: ['refused'] },
  { name: 'codex', open: openResponses, network: true, offers: ['models', 'replay'] },
  {
    name: 'codex, a model that does not think',
    open: () => openResponses('gpt-4.1'),
    network: true,
    offers: ['models'],
  },
  {
    name: 'replicate',
    open: openReplicate,
    network: true,
    offers: ['models'],
    lacks: ['call', 'parallel-calls', ...noThinking, 'refused'],
  },
]
/** Those behind which a program of this machine stands. */
export const programDrivers: readonly Row[] = [
  { name: 'claude-code', open: () => openProgram('claude-code'), network: true, lacks: noCalls },
  { name: 'codex-cli', open: () => openProgram('codex-cli'), network: true, lacks: [...noCalls, 'length', 'refused'] },
  {
    name: 'gemini-cli',
    open: () => openProgram('gemini-cli'),
    network: true,
    lacks: [...noCalls, ...noThinking, 'length', 'refused'],
  },
  { name: 'qwen-code', open: () => openProgram('qwen-code'), network: true, lacks: [...noCalls, 'length', 'refused'] },
]
