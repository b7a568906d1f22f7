import { createMask } from '../../core/log/mask.ts'
import { MarkdownStream } from '../../core/cli/terminal/markdown.ts'
import { clean } from '../../plugins/audit/clean.ts'
import { countTokens, familyOf } from '../../plugins/chat/context/window.ts'
import { repair } from '../../plugins/chat/safety/history-repair.ts'
import { holdsPersonalData } from '../../plugins/chat/safety/labels.ts'
import { score } from '../../plugins/chat/turn/model-choice.ts'
import { screen } from '../../plugins/screening/screen.ts'
import { toMarkdown } from '../../plugins/web/markdown.ts'
import type { Turn } from 'svc/providers'
import type { Result } from './figures.ts'

const SMALL = 100_000
const FACTOR = 10
/**
 * Ten times the input may cost ten times as much, and half as much again for memory that no cache holds. What grows
 * with the square costs a hundred times as much.
 */
const MAX_RATIO = 15
const ROUNDS = 3
/** Results are kept, or the engine would leave out work whose result nobody uses. */
const kept: { result: unknown } = { result: undefined }

/** Long lists of objects outlive the young generation, so the collector copies them too. */
const MAX_LIST_RATIO = 40

interface Subject {
  readonly label: string
  readonly maxRatio?: number
  /** One case per hostile pattern: an input of a given size, and the work on it. */
  readonly cases: readonly ((size: number) => () => unknown)[]
}

/** A subject that reads texts made of one repeated pattern. */
function reads(label: string, patterns: readonly string[], read: (text: string) => unknown): Subject {
  return {
    label,
    cases: patterns.map((pattern) => (size) => {
      // Flat: a text of nested pieces is flattened by the first that reads it.
      const text = Buffer.from(pattern.repeat(Math.ceil(size / pattern.length)).slice(0, size)).toString()
      return () => read(text)
    }),
  }
}

const mask = createMask()
const secrets = ['api_key', 'a-', 'https://', 'Bearer ', '?a', 'eyJa', 'token=', '-----BEGIN ', 'A']
const gpt = familyOf('gpt-4o')

const subjects: readonly Subject[] = [
  reads('secrets masked in log lines', secrets, (text) => mask.text(text)),
  reads('secrets removed from audit entries', secrets, (text) => clean(text, SMALL * FACTOR)),
  reads('prompt injection screening', ['word ', 'ignore all ', '<|im_', 'aWdub3Jl', '\u200b', '!['], screen),
  reads('personal data search', ['4', '4 ', 'DE89 ', 'a.', '+1 '], (text) => holdsPersonalData(text, 'contacts')),
  reads('routing score', ['a', ' ', 'import ', '{\n', '1'], (text) => score({ text, images: 0, earlier: 0 })),
  reads('token count', ['a sentence of words, ', '1', '漢字', '{"a":1}', '\n'], (text) => countTokens(text, gpt)),
  reads(
    'web pages to Markdown',
    ['<p>hello <b>world</b></p>', '<div>', '<a x="', '<', '<!--', '&#', '<script>', '<ul><li>', `<a '>"`],
    (html) => toMarkdown(html, 'https://example.test/'),
  ),
  reads('Markdown in a terminal', ['1. ', '*a **b ', '[', '_a__b', '- a\n'], streamMarkdown),
  {
    label: 'repair of a history of 200,000 messages',
    maxRatio: MAX_LIST_RATIO,
    cases: [
      (size) => repairs(size / 5, (n) => brokenTurn(n)),
      (size) => repairs(size / 5, () => ({ role: 'user', parts: [{ type: 'text', text: 'q' }] })),
    ],
  },
]

function streamMarkdown(text: string): number {
  const stream = new MarkdownStream(() => ({ width: 80, colored: false }))
  let length = 0
  for (let at = 0; at < text.length; at += 5000) {
    stream.add(text.slice(at, at + 5000))
    length += stream.take().length
  }
  return length + stream.end().length
}

function repairs(count: number, turnAt: (n: number) => Turn): () => unknown {
  const turns = Array.from({ length: count }, (_, n) => turnAt(n))
  return () => repair(turns)
}
/** Questions, calls and results; the results of every other call are missing. */
function brokenTurn(n: number): Turn {
  if (n % 3 === 0) return { role: 'user', parts: [{ type: 'text', text: 'q' }] }
  if (n % 3 === 1) return { role: 'assistant', text: 'a', calls: [{ id: `c${n}`, name: 'look', args: {} }] }
  return { role: 'tool', callId: n % 2 === 0 ? `c${n - 1}` : 'lost', tool: 'look', text: 'found', failed: false }
}

interface Cost {
  readonly small: number
  readonly large: number
}
/** Milliseconds for the small and the large input. Each round works through as much small input as large input. */
function measure(prepare: (size: number) => () => unknown): Cost {
  const small = prepare(SMALL)
  const large = prepare(SMALL * FACTOR)
  const costs = Array.from({ length: ROUNDS }, (): Cost => {
    const smallMs = cpuMs(() => {
      for (let n = 0; n < FACTOR; n++) kept.result = small()
    })
    return { small: smallMs / FACTOR, large: cpuMs(large) }
  })
  return {
    small: Math.min(...costs.map((cost) => cost.small)),
    large: Math.min(...costs.map((cost) => cost.large)),
  }
}
/** Processor time of this thread: another process that has the processor does not count. */
function cpuMs(work: () => unknown): number {
  const before = process.threadCpuUsage()
  kept.result = work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/** Whether everything that reads texts from outside takes time in proportion to their length. */
export async function hostile(): Promise<readonly Result[]> {
  const ms = (value: number): string => `${value.toFixed(2)} ms`
  return subjects.map(({ label, cases, maxRatio = MAX_RATIO }) => {
    const costs = cases.map(measure)
    const small = costs.reduce((sum, cost) => sum + cost.small, 0)
    const large = costs.reduce((sum, cost) => sum + cost.large, 0)
    const ratio = large / small
    return {
      label: `${label}, ${cases.length} hostile inputs: ten times the length`,
      value: ms(large),
      floor: ms(small),
      ratio: `${ratio.toFixed(1)} x`,
      goal: `<= ${maxRatio} x`,
      reached: ratio <= maxRatio,
    }
  })
}
