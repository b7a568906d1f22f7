import { ChevronIcon, ToolIcon } from './icons.tsx'
import type { ToolCall as Call } from './transcript.ts'

const longestShown = 20_000
const states: Readonly<Record<Call['state'], string>> = {
  running: 'running',
  done: 'done',
  failed: 'failed',
  unknown: '',
}

interface ToolCallProps {
  readonly call: Call
  /** An approval is asked for. */
  readonly isWaiting: boolean
}

/** One call of a tool, collapsed until the user opens it to see its input and output. */
export function ToolCall({ call, isWaiting }: ToolCallProps) {
  const input = call.input === undefined ? undefined : show(call.input)
  const waits = isWaiting && call.state === 'running'
  return (
    <details class={`tool ${call.state}`}>
      <summary>
        <ToolIcon />
        <span class="tool-name">
          <span class="hidden">Tool </span>
          {call.name}
        </span>
        <span class="tool-preview" aria-hidden="true">
          {preview(call)}
        </span>
        <span class="tool-state">{waits ? 'waits for you' : states[call.state]}</span>
        <ChevronIcon />
      </summary>
      <div class="tool-body">
        <h4>Input</h4>
        {input === undefined ? (
          <p class="hint">{call.state === 'running' ? 'Not known before the call has ended.' : 'Not recorded.'}</p>
        ) : (
          <pre tabIndex={0}>{input}</pre>
        )}
        <h4>{call.state === 'failed' ? 'Error' : 'Result'}</h4>
        {call.result === undefined ? (
          <p class="hint">
            {waits ? 'It runs when you approve it.' : call.state === 'running' ? 'Still running.' : 'Not recorded.'}
          </p>
        ) : (
          <pre tabIndex={0}>{shorten(call.result)}</pre>
        )}
      </div>
    </details>
  )
}

function show(value: unknown): string {
  if (typeof value === 'string') return shorten(value)
  return shorten(JSON.stringify(value, undefined, 2) ?? '')
}

function preview(call: Call): string {
  const input =
    call.input === undefined ? '' : typeof call.input === 'string' ? call.input : (JSON.stringify(call.input) ?? '')
  return input === '{}' ? '' : input.slice(0, 120)
}

function shorten(text: string): string {
  return text.length <= longestShown
    ? text
    : `${text.slice(0, longestShown)}\n… ${text.length - longestShown} more characters`
}
