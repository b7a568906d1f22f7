import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import type { Scenario } from '../contract/provider.ts'

/** What the program was given, for the test to look at. */
export interface RecordedRun {
  readonly args: readonly string[]
  readonly prompt: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly instructions: string | undefined
  readonly settings: unknown
  readonly folder: readonly string[]
}

/** Flags with how many words follow them. Others are refused, as the programs refuse them. */
const FLAGS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  claude: {
    '-p': 0,
    '--output-format': 1,
    '--verbose': 0,
    '--include-partial-messages': 0,
    '--no-session-persistence': 0,
    '--setting-sources': 1,
    '--strict-mcp-config': 0,
    '--disable-slash-commands': 0,
    '--tools': 1,
    '--model': 1,
    '--system-prompt-file': 1,
  },
  codex: {
    exec: 0,
    '--json': 0,
    '--skip-git-repo-check': 0,
    '--ephemeral': 0,
    '--ignore-user-config': 0,
    '--ignore-rules': 0,
    '--color': 1,
    '--sandbox': 1,
    '-c': 1,
    '--model': 1,
    '-': 0,
  },
  gemini: {
    '--output-format': 1,
    '--approval-mode': 1,
    '--extensions': 1,
    '--allowed-mcp-server-names': 1,
    '--model': 1,
  },
  qwen: {
    '--output-format': 1,
    '--include-partial-messages': 0,
    '--approval-mode': 1,
    '--chat-recording': 0,
    '--core-tools': 1,
    '--extensions': 1,
    '--allowed-mcp-server-names': 1,
    '--model': 1,
  },
}
const [, , program = '', dir = '', ...args] = process.argv

function refuse(message: string): never {
  writeSync(2, `${message}\n`)
  process.exit(program === 'codex' ? 2 : 1)
}
const given = new Map<string, string>()
for (let at = 0; at < args.length; at++) {
  const [flag = '', value] = args[at]?.startsWith('--') ? (args[at] ?? '').split('=') : [args[at]]
  const words = FLAGS[program]?.[flag]
  if (words === undefined) refuse(`error: unknown option '${flag}'`)
  given.set(flag, words === 1 ? (args[++at] ?? refuse(`error: option '${flag}' argument missing`)) : (value ?? ''))
}
if (program !== 'codex' && given.get('--output-format') !== 'stream-json') refuse('this fake speaks stream-json')
if (program === 'claude' && (!given.has('-p') || !given.has('--verbose')))
  refuse('Error: When using --print, --output-format=stream-json requires --verbose')
if (program === 'codex' && (!given.has('exec') || !given.has('--skip-git-repo-check')))
  refuse('Not inside a trusted directory and --skip-git-repo-check was not specified.')

const prompt = readFileSync(0, 'utf8')
if (prompt.trim() === '')
  refuse('Error: Input must be provided either through stdin or as a prompt argument when using --print')
const instructions = given.get('--system-prompt-file') ?? process.env['GEMINI_SYSTEM_MD']
const settings = process.env['GEMINI_CLI_SYSTEM_SETTINGS_PATH']
const record: RecordedRun = {
  args,
  prompt,
  env: process.env,
  folder: readdirSync('.'),
  instructions: instructions === undefined ? undefined : readFileSync(instructions, 'utf8'),
  settings: settings === undefined ? undefined : JSON.parse(readFileSync(settings, 'utf8')),
}
mkdirSync(join(dir, 'runs'), { recursive: true })
writeFileSync(join(dir, 'runs', `${process.hrtime.bigint()}.json`), JSON.stringify(record))

/** The next one that no other run took. */
function take(): Scenario {
  for (const name of readdirSync(join(dir, 'queue')).toSorted()) {
    const taken = join(dir, `taken-${name}`)
    try {
      renameSync(join(dir, 'queue', name), taken)
    } catch {
      continue /* another run was faster */
    }
    return JSON.parse(readFileSync(taken, 'utf8'))
  }
  return { kind: 'text', deltas: ['OK'] }
}
const scenario = take()
let pieces = Infinity
async function say(value: unknown): Promise<void> {
  const bytes = Buffer.from(typeof value === 'string' ? value : `${JSON.stringify(value)}\n`)
  for (let at = 0; at < bytes.length; at += pieces) {
    writeAll(bytes.subarray(at, Math.min(bytes.length, at + pieces)))
    if (pieces < bytes.length) await turn()
  }
}
function writeAll(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(1, bytes, at)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
    }
  }
}

const USAGE = {
  claude: {
    usual: { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 5 },
    detailed: { input_tokens: 15, cache_creation_input_tokens: 5, cache_read_input_tokens: 80, output_tokens: 50 },
  },
  qwen: {
    usual: { input_tokens: 10, output_tokens: 5 },
    detailed: { input_tokens: 100, cache_read_input_tokens: 80, output_tokens: 50, total_tokens: 150 },
  },
  codex: {
    usual: { input_tokens: 10, cached_input_tokens: 0, output_tokens: 5 },
    detailed: { input_tokens: 100, cached_input_tokens: 80, output_tokens: 50, reasoning_output_tokens: 20 },
  },
  gemini: {
    usual: { input_tokens: 10, output_tokens: 5, cached: 0 },
    detailed: {
      total_tokens: 150,
      input_tokens: 100,
      output_tokens: 50,
      cached: 80,
      input: 20,
      duration_ms: 5,
      tool_calls: 0,
    },
  },
} as const
function usage(): object | undefined {
  const { usual, detailed } = USAGE[program as keyof typeof USAGE]
  const wanted = scenario.kind === 'text' ? scenario.usage : undefined
  return wanted === 'missing'
    ? undefined
    : wanted === 'negative'
      ? { ...usual, input_tokens: -5 }
      : wanted === 'absurd'
        ? { ...usual, input_tokens: 1e30 }
        : wanted === 'detailed'
          ? detailed
          : usual
}

const id = { session_id: 's-1', uuid: 'u-1', parent_tool_use_id: null }
const speaks = program === 'qwen' ? 'claude' : program
const start = {
  claude: { type: 'system', subtype: 'init', cwd: '/', tools: [], ...id },
  codex: { type: 'thread.started', thread_id: 't-1' },
  gemini: { type: 'init', timestamp: 't', session_id: 's-1', model: 'm' },
}
async function text(deltas: readonly string[], thinking: readonly string[]): Promise<void> {
  if (speaks === 'claude') {
    const event = (delta: object): object => ({
      type: 'stream_event',
      event: { type: 'content_block_delta', index: 0, delta },
      ...id,
    })
    for (const delta of thinking) await say(event({ type: 'thinking_delta', thinking: delta }))
    for (const delta of deltas) await say(event({ type: 'text_delta', text: delta }))
    // A program below the one that answers says something too.
    await say({ ...event({ type: 'text_delta', text: 'not for us' }), parent_tool_use_id: 'toolu_1' })
    await say({
      type: 'assistant',
      message: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'x',
        content: [{ type: 'text', text: deltas.join('') }],
        stop_reason: null,
        usage: {},
      },
      ...id,
    })
  } else if (speaks === 'codex') {
    await say({ type: 'turn.started' })
    if (thinking.length > 0)
      await say({ type: 'item.completed', item: { id: 'item_0', type: 'reasoning', text: thinking.join('') } })
    await say({ type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: deltas.join('') } })
  } else {
    await say({ type: 'message', timestamp: 't', role: 'user', content: prompt })
    for (const content of deltas)
      await say({ type: 'message', timestamp: 't', role: 'assistant', content, delta: true })
  }
}
async function end(stop?: 'length' | 'refused'): Promise<void> {
  const counted = usage()
  if (speaks === 'claude') {
    if (stop)
      await say({
        type: 'stream_event',
        event: { type: 'message_delta', delta: { stop_reason: stop === 'length' ? 'max_tokens' : 'refusal' } },
        ...id,
      })
    await say({
      type: 'result',
      subtype: 'success',
      is_error: false,
      duration_ms: 5,
      num_turns: 1,
      result: 'all of it once more',
      total_cost_usd: 0.01,
      ...(counted && { usage: counted }),
      ...id,
    })
  } else if (speaks === 'codex') await say({ type: 'turn.completed', ...(counted && { usage: counted }) })
  else await say({ type: 'result', timestamp: 't', status: 'success', ...(counted && { stats: counted }) })
}
async function fail(status: number, message: string): Promise<void> {
  if (program === 'claude') {
    await say({
      type: 'assistant',
      message: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: '<synthetic>',
        content: [{ type: 'text', text: `API Error: ${status} ${message}` }],
      },
      error: 'unknown',
      ...id,
    })
    await say({
      type: 'result',
      subtype: 'success',
      is_error: true,
      api_error_status: status,
      result: `API Error: ${status} ${message}`,
      usage: USAGE.claude.usual,
      ...id,
    })
  } else if (program === 'qwen')
    await say({
      type: 'result',
      subtype: 'error_during_execution',
      is_error: true,
      error: { type: 'api', message: `[API Error: Status: ${status} ${message}]` },
      usage: USAGE.qwen.usual,
      ...id,
    })
  else if (program === 'codex') {
    await say({ type: 'error', message: 'Reconnecting... 1/5' })
    await say({ type: 'turn.failed', error: { message: `unexpected status ${status}: ${message}` } })
  } else
    await say({
      type: 'result',
      timestamp: 't',
      status: 'error',
      error: { type: 'Error', message: `[API Error: got status: ${status}. ${message}]` },
    })
  process.exitCode = 1
}

async function play(): Promise<void> {
  if (scenario.kind === 'fault' && scenario.fault === 'html') return say('<!doctype html>\n<title>Sign in</title>\n')
  if (scenario.kind === 'fault' && scenario.fault === 'empty') return
  if (scenario.kind === 'fault' && (scenario.fault === 'split' || scenario.fault === 'slow-bytes'))
    pieces = scenario.fault === 'split' ? 7 : 1
  await say('Loaded cached credentials.\n')
  await say(start[speaks as keyof typeof start])
  switch (scenario.kind) {
    case 'text':
      await text(scenario.deltas, scenario.thinking ?? [])
      return end(scenario.stop)
    case 'held':
      await text(scenario.deltas, [])
      setInterval(() => undefined, 60_000)
      return
    case 'status':
      return fail(
        scenario.status,
        scenario.about === 'context_length'
          ? 'prompt is too long: 250000 tokens'
          : scenario.about === 'content_filter'
            ? 'blocked by our content policy'
            : 'It failed.',
      )
    case 'calls':
    case 'embed':
      throw new Error('these programs do neither')
    case 'fault':
      break
  }
  const { fault, deltas } = scenario
  if (fault === 'malformed-all') await say('{"type": [\n{"type": 5,\n{nonsense\n')
  if (fault === 'malformed-one') await say('{"type": [\n')
  if (fault === 'endless-line') await say(`{"${'x'.repeat(9_000_000)}`)
  await text(deltas, [])
  if (fault === 'overloaded') return fail(529, 'Overloaded')
  if (fault === 'reset') process.kill(process.pid, 'SIGKILL')
  if (fault !== 'cut') await end()
}
await play()
