import { isObject } from 'svc/sdk'
import type { Screening } from '../../screening/contract.ts'
import type { ScanFinding } from '../contract.ts'
import type { SkillManifest } from '../manifest/skill.ts'

export type Warning = ScanFinding
/** What a manifest asks for, and what else was read of it. */
type Asked = Pick<SkillManifest, 'needsTools' | 'permissions' | 'runtime' | 'tools'>
interface Named {
  readonly name: string
  readonly bytes: Uint8Array
}

/** API facts 2.10: phrases that address the model instead of describing a task. Any of them refuses a skill. */
const overrides: readonly string[] = [
  'ignore previous instructions',
  'ignore all previous',
  'disregard previous',
  'disregard all previous',
  'forget your instructions',
  'you are now',
  'new instructions:',
  'system prompt override',
  'do not follow',
  'override system',
]
/** What takes no room on a screen: soft hyphens, joiners, what turns text around. */
const UNSEEN = /\p{Cf}/gu
/** Phrases that a person should look at. */
const suspects: Readonly<Record<string, string>> = {
  'send to http': 'sends data away',
  'send to https': 'sends data away',
  'base64 encode and send': 'sends data away',
  'post to http': 'sends data away',
  exfiltrate: 'sends data away',
  'rm -rf': 'has a dangerous command',
  chmod: 'has a dangerous command',
  sudo: 'has a dangerous command',
}
const LONG_PROMPT = 50_000
const MANY_TOOLS = 10
const commands: ReadonlySet<string> = new Set(['shell_exec', 'bash', 'process_start', 'docker_exec'])
const writers: ReadonlySet<string> = new Set(['file_write', 'file_delete', 'apply_patch'])

/** What is suspicious in the files of a skill and in what it asks for: the worst first. */
export async function scan(
  manifest: Asked,
  files: readonly Named[],
  screening: Screening | undefined,
): Promise<readonly Warning[]> {
  const found: Warning[] = []
  // A model is shown what a parser made of a file, and that of escapes such as \u0049 as well.
  const texts = [...files.map(({ name, bytes }) => ({ name, text: toText(bytes) })), ...parsedTexts(manifest, files)]
  for (const { name, text } of texts) {
    if (text === undefined) continue
    found.push(...scanText(name, text))
    const screened = await screening?.screen(text)
    for (const { level, rule, excerpt } of screened?.findings ?? [])
      if (level !== 'info') found.push({ severity: level, message: `${name}: ${rule}: "${excerpt}"` })
    if ((name === 'SKILL.md' || name === 'skill.toml') && text.length > LONG_PROMPT)
      found.push({ severity: 'info', message: `${name} has ${text.length} characters: it fills the window of a model` })
  }
  found.push(...scanManifest(manifest))
  const order = ['critical', 'warning', 'info']
  const once = new Map(found.map((each) => [each.message, each]))
  return [...once.values()].toSorted((one, other) => order.indexOf(one.severity) - order.indexOf(other.severity))
}

export function scanText(name: string, text: string): readonly Warning[] {
  const folded = text
    .normalize('NFKC')
    .replaceAll(UNSEEN, '')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .toLowerCase()
  return [
    ...overrides
      .filter((phrase) => folded.includes(phrase))
      .map((phrase) => ({ severity: 'critical' as const, message: `${name}: tells the model "${phrase}"` })),
    ...Object.entries(suspects)
      .filter(([phrase]) => folded.includes(phrase))
      .map(([phrase, what]) => ({ severity: 'warning' as const, message: `${name}: ${what}: "${phrase}"` })),
  ]
}

/**
 * Decision: the facts refuse a skill that names a shell. Here naming a tool grants nothing, the manifest of the agent
 * does, and a person approves each call of a shell script: so both are warnings.
 */
function scanManifest({ needsTools, permissions, runtime, tools }: Asked): readonly Warning[] {
  const warn = (message: string): Warning => ({ severity: 'warning', message })
  return [
    ...needsTools
      .filter((tool) => commands.has(tool.toLowerCase()))
      .map((tool) => warn(`its text runs commands: ${tool}`)),
    ...needsTools.filter((tool) => writers.has(tool)).map((tool) => warn(`its text changes files: ${tool}`)),
    ...(runtime === 'shell' ? [warn('its tools are shell scripts')] : []),
    ...(runtime === 'node' ? [warn('its tools are programs of Node')] : []),
    ...(permissions.includes('network:*') ? [warn('its tools may connect to every host')] : []),
    ...(tools.length > MANY_TOOLS ? [{ severity: 'info' as const, message: `it has ${tools.length} tools` }] : []),
  ]
}

/** What was read of the manifest, as one text. */
function parsedTexts(manifest: Asked, files: readonly Named[]): readonly { readonly name: string; text: string }[] {
  const name = files.map((file) => file.name).find((each) => each.endsWith('.toml')) ?? 'SKILL.md'
  return [{ name, text: [...textsIn(manifest)].join('\n') }]
}
function* textsIn(value: unknown): Iterable<string> {
  if (typeof value === 'string') yield value
  else if (Array.isArray(value)) for (const each of value) yield* textsIn(each)
  else if (isObject(value))
    for (const [key, each] of Object.entries(value)) {
      yield key
      yield* textsIn(each)
    }
}

/** `undefined` for what is no text, which no tool shows to a model. */
function toText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
