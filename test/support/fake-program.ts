import type { Fault, Scenario } from '../contract/provider.ts'

/** What the program was given, for the test to look at. */
export interface RecordedRun {
  readonly args: readonly string[]
  readonly prompt: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly instructions: string | undefined
  readonly settings: unknown
  readonly folder: readonly string[]
}
/** The programs that are played. Qwen's speaks as Claude's does. */
export type ProgramName = 'claude' | 'codex' | 'gemini' | 'qwen'

/** Flags with how many words follow them. Others are refused, as the programs refuse them. */
const FLAGS: Readonly<Record<ProgramName, Readonly<Record<string, number>>>> = {
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
/** What a run without one of these flags is told. */
const REQUIRED: Readonly<Record<ProgramName, Readonly<Record<string, string>>>> = {
  claude: {
    '-p': 'Error: stdin is read with --print alone',
    '--verbose': 'Error: When using --print, --output-format=stream-json requires --verbose',
    '--output-format': 'this fake speaks stream-json',
  },
  codex: {
    exec: 'this fake has no terminal',
    '--skip-git-repo-check': 'Not inside a trusted directory and --skip-git-repo-check was not specified.',
  },
  gemini: { '--output-format': 'this fake speaks stream-json' },
  qwen: { '--output-format': 'this fake speaks stream-json' },
}

/**
 * The program itself: a script of the shell, which starts in a fiftieth of the time of Node. It refuses the flags that
 * the real one refuses, writes down what it was given and plays the next scenario of `dir/queue`.
 */
export function programScript(program: ProgramName, dir: string): string {
  const flags = Object.entries(FLAGS[program])
  const cases = flags.map(([flag, words]) => `    ${quoted(flag)}) ${words === 1 ? TAKE_WORD : ':'} ;;`)
  const required = Object.entries(REQUIRED[program]).map(
    ([flag, message]) => `case "$given" in *${quoted(`<${flag}>`)}*) ;; *) refuse ${quoted(message)} ;; esac`,
  )
  return `#!/bin/sh
run=$(/usr/bin/mktemp -d ${quoted(`${dir}/runs/XXXXXXXX`)})
/usr/bin/env -0 > "$run/env"
PATH=/usr/bin:/bin
refuse() { printf '%s\\n' "$1" >&2; exit ${program === 'codex' ? 2 : 1}; }
for word in "$@"; do printf '%s\\0' "$word"; done > "$run/args"
given= instructions=$GEMINI_SYSTEM_MD
while [ $# -gt 0 ]; do
  case "$1" in --*) flag=\${1%%=*} ;; *) flag=$1 ;; esac
  case "$flag" in
${cases.join('\n')}
    *) refuse "error: unknown option '$flag'" ;;
  esac
  case "$flag" in
    --system-prompt-file) instructions=$1 ;;
    --output-format) [ "$1" = stream-json ] || refuse 'this fake speaks stream-json' ;;
  esac
  given="$given<$flag>"
  shift
done
${required.join('\n')}
cat > "$run/prompt"
grep -q '[^[:space:]]' "$run/prompt" || refuse 'Error: Input must be provided either through stdin or as a prompt argument'
ls -A > "$run/folder"
[ -z "$instructions" ] || cp "$instructions" "$run/instructions"
[ -z "$GEMINI_CLI_SYSTEM_SETTINGS_PATH" ] || cp "$GEMINI_CLI_SYSTEM_SETTINGS_PATH" "$run/settings"
scene=${quoted(dir)}/usual
for next in ${quoted(dir)}/queue/*; do
  mv "$next" "$run/scene" 2>/dev/null && scene="$run/scene" && break
done
. "$scene/play"
`
}
const TAKE_WORD = `[ $# -gt 1 ] || refuse "error: option '$flag' argument missing"; shift`
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** A scenario as the program plays it: what it writes, and the line of its script that writes it and ends the run. */
export interface Performance {
  readonly output: string
  readonly play: string
}

/** How `program` plays a scenario. */
export function perform(program: ProgramName, scenario: Scenario): Performance {
  const speech = speeches[program === 'qwen' ? 'claude' : program]
  const begin = ['Loaded cached credentials.\n', line(speech.start)]
  const whole = 'cat "$scene/output"; exit 0'
  switch (scenario.kind) {
    case 'text':
      return {
        output: [
          ...begin,
          ...speech.text(scenario.deltas, scenario.thinking ?? []),
          ...speech.end(usageOf(program, scenario.usage), scenario.stop),
        ].join(''),
        play: whole,
      }
    case 'held':
      return {
        output: [...begin, ...speech.text(scenario.deltas, [])].join(''),
        play: 'cat "$scene/output"; exec sleep 86400',
      }
    case 'status':
      return {
        output: [...begin, ...failure(program, scenario.status, REASONS[scenario.about ?? 'none'])].join(''),
        play: 'cat "$scene/output"; exit 1',
      }
    case 'fault':
      return faulty(program, scenario)
    case 'calls':
    case 'embed':
      throw new Error('these programs do neither')
  }
}
const REASONS = {
  context_length: 'prompt is too long: 250000 tokens',
  content_filter: 'blocked by our content policy',
  none: 'It failed.',
} as const

/** What comes in the place of, or before, a healthy answer. */
const NOISE: Readonly<Partial<Record<Fault, string>>> = {
  'malformed-all': '{"type": [\n{"type": 5,\n{nonsense\n',
  'malformed-one': '{"type": [\n',
  'endless-line': `{"${'x'.repeat(9_000_000)}`,
}
const PLAYS: Readonly<Partial<Record<Fault, string>>> = {
  overloaded: 'cat "$scene/output"; exit 1',
  reset: 'cat "$scene/output"; kill -9 $$',
  split: 'dd if="$scene/output" bs=7 2>/dev/null; exit 0',
  'slow-bytes': 'dd if="$scene/output" bs=1 2>/dev/null; exit 0',
}
function faulty(program: ProgramName, { fault, deltas }: Extract<Scenario, { kind: 'fault' }>): Performance {
  const play = PLAYS[fault] ?? 'cat "$scene/output"; exit 0'
  if (fault === 'html') return { output: '<!doctype html>\n<title>Sign in</title>\n', play }
  if (fault === 'empty') return { output: '', play }
  const speech = speeches[program === 'qwen' ? 'claude' : program]
  const lines = ['Loaded cached credentials.\n', line(speech.start), NOISE[fault] ?? '', ...speech.text(deltas, [])]
  if (fault === 'overloaded') lines.push(...failure(program, 529, 'Overloaded'))
  else if (fault !== 'reset' && fault !== 'cut') lines.push(...speech.end(usageOf(program, undefined)))
  return { output: lines.join(''), play }
}

const line = (value: object): string => `${JSON.stringify(value)}\n`
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
function usageOf(program: ProgramName, wanted: Extract<Scenario, { kind: 'text' }>['usage']): object | undefined {
  const { usual, detailed } = USAGE[program]
  if (wanted === 'missing') return undefined
  if (wanted === 'negative') return { ...usual, input_tokens: -5 }
  if (wanted === 'absurd') return { ...usual, input_tokens: 1e30 }
  return wanted === 'detailed' ? detailed : usual
}

interface Speech {
  readonly start: object
  text(deltas: readonly string[], thinking: readonly string[]): readonly string[]
  end(usage: object | undefined, stop?: 'length' | 'refused'): readonly string[]
}
const ids = { session_id: 's-1', uuid: 'u-1', parent_tool_use_id: null }
const delta = (content: object): object => ({
  type: 'stream_event',
  event: { type: 'content_block_delta', index: 0, delta: content },
  ...ids,
})
const speeches: Readonly<Record<Exclude<ProgramName, 'qwen'>, Speech>> = {
  claude: {
    start: { type: 'system', subtype: 'init', cwd: '/', tools: [], ...ids },
    text: (deltas, thinking) => [
      ...thinking.map((thought) => line(delta({ type: 'thinking_delta', thinking: thought }))),
      ...deltas.map((text) => line(delta({ type: 'text_delta', text }))),
      // A program below the one that answers says something too.
      line({ ...delta({ type: 'text_delta', text: 'not for us' }), parent_tool_use_id: 'toolu_1' }),
      line({
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
        ...ids,
      }),
    ],
    end: (usage, stop) => [
      ...(stop === undefined
        ? []
        : [
            line({
              type: 'stream_event',
              event: { type: 'message_delta', delta: { stop_reason: stop === 'length' ? 'max_tokens' : 'refusal' } },
              ...ids,
            }),
          ]),
      line({
        type: 'result',
        subtype: 'success',
        is_error: false,
        duration_ms: 5,
        num_turns: 1,
        result: 'all of it once more',
        total_cost_usd: 0.01,
        ...(usage && { usage }),
        ...ids,
      }),
    ],
  },
  codex: {
    start: { type: 'thread.started', thread_id: 't-1' },
    text: (deltas, thinking) => [
      line({ type: 'turn.started' }),
      ...(thinking.length > 0
        ? [line({ type: 'item.completed', item: { id: 'item_0', type: 'reasoning', text: thinking.join('') } })]
        : []),
      line({ type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: deltas.join('') } }),
    ],
    end: (usage) => [line({ type: 'turn.completed', ...(usage && { usage }) })],
  },
  gemini: {
    start: { type: 'init', timestamp: 't', session_id: 's-1', model: 'm' },
    text: (deltas) => [
      line({ type: 'message', timestamp: 't', role: 'user', content: 'go on' }),
      ...deltas.map((content) => line({ type: 'message', timestamp: 't', role: 'assistant', content, delta: true })),
    ],
    end: (usage) => [line({ type: 'result', timestamp: 't', status: 'success', ...(usage && { stats: usage }) })],
  },
}

/** How each program says that its vendor refused. */
function failure(program: ProgramName, status: number, message: string): readonly string[] {
  switch (program) {
    case 'claude':
      return [
        line({
          type: 'assistant',
          message: {
            id: 'm',
            type: 'message',
            role: 'assistant',
            model: '<synthetic>',
            content: [{ type: 'text', text: `API Error: ${status} ${message}` }],
          },
          error: 'unknown',
          ...ids,
        }),
        line({
          type: 'result',
          subtype: 'success',
          is_error: true,
          api_error_status: status,
          result: `API Error: ${status} ${message}`,
          usage: USAGE.claude.usual,
          ...ids,
        }),
      ]
    case 'qwen':
      return [
        line({
          type: 'result',
          subtype: 'error_during_execution',
          is_error: true,
          error: { type: 'api', message: `[API Error: Status: ${status} ${message}]` },
          usage: USAGE.qwen.usual,
          ...ids,
        }),
      ]
    case 'codex':
      return [
        line({ type: 'error', message: 'Reconnecting... 1/5' }),
        line({ type: 'turn.failed', error: { message: `unexpected status ${status}: ${message}` } }),
      ]
    case 'gemini':
      return [
        line({
          type: 'result',
          timestamp: 't',
          status: 'error',
          error: { type: 'Error', message: `[API Error: got status: ${status}. ${message}]` },
        }),
      ]
  }
}
