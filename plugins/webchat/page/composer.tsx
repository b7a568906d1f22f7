import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { SendIcon, StopIcon } from './icons.tsx'

/** The commands of Interface 6.1 that are of use in an empty message box. */
const commands = [
  ['/new', 'start a new conversation'],
  ['/model', 'the model that answers'],
  ['/models', 'models of the providers that can be used'],
  ['/providers', 'providers, and whether they have a key'],
  ['/usage', 'tokens and cost of this conversation and this agent'],
  ['/think', 'turn extended thinking on or off'],
  ['/help', 'all commands of this daemon'],
] as const

/** Not where it would make a phone open its keyboard over what was just opened. */
export function focusMessageBox(): void {
  if (!matchMedia('(pointer: coarse)').matches) document.getElementById('message-box')?.focus()
}

interface ComposerProps {
  readonly name: string
  readonly busy: boolean
  readonly onSend: (text: string) => void
  readonly onStop: () => void
}

export function Composer({ name, busy, onSend, onStop }: ComposerProps) {
  const [draft, setDraft] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  const list = useRef<HTMLUListElement>(null)
  const offered = /^\/\w*$/.test(draft)
    ? commands.filter(([command]) => command.startsWith(draft) && command !== draft)
    : []

  useEffect(() => {
    focusMessageBox()
  }, [])
  useLayoutEffect(() => {
    const area = field.current
    if (!area) return
    area.style.height = 'auto'
    area.style.height = `${Math.min(area.scrollHeight, 220)}px`
  }, [draft])

  // In the order they are seen: the commands from the top, then the box below them.
  const moveFocus = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowUp' ? -1 : event.key === 'ArrowDown' ? 1 : 0
    if (step === 0 || offered.length === 0 || !field.current) return
    const places = [...(list.current?.querySelectorAll('button') ?? []), field.current]
    const next = places[places.findIndex((place) => place === document.activeElement) + step]
    if (!next) return
    event.preventDefault()
    next.focus()
  }
  const send = (): void => {
    const text = draft.trim()
    if (text === '') return
    if (busy) {
      if (text === '/stop') {
        setDraft('')
        onStop()
      }
      return
    }
    setDraft('')
    onSend(text)
    field.current?.focus()
  }

  return (
    <form
      class="composer"
      onKeyDown={moveFocus}
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {offered.length > 0 && (
        <ul ref={list} class="commands" aria-label="Commands">
          {offered.map(([command, meaning]) => (
            <li key={command}>
              <button
                type="button"
                onClick={() => {
                  setDraft(command)
                  field.current?.focus()
                }}
              >
                <code>{command}</code> {meaning}
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="composer-box">
        <label class="hidden" for="message-box">
          Message to {name}
        </label>
        <textarea
          id="message-box"
          ref={field}
          rows={1}
          value={draft}
          placeholder={`Message ${name}`}
          enterkeyhint="send"
          aria-describedby="composer-hint"
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape' && offered.length > 0) {
              event.preventDefault()
              setDraft('')
              return
            }
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
            event.preventDefault()
            send()
          }}
        />
        {busy ? (
          <button type="button" class="send stop" onClick={onStop}>
            <StopIcon />
            <span class="hidden">Stop the answer</span>
          </button>
        ) : (
          <button type="submit" class="send" disabled={draft.trim() === ''}>
            <SendIcon />
            <span class="hidden">Send</span>
          </button>
        )}
      </div>
      <p id="composer-hint" class="composer-hint">
        {busy ? (
          <>
            <kbd>Esc</kbd> stops the answer
          </>
        ) : (
          <>
            <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> starts a line, <kbd>/</kbd> lists commands
          </>
        )}
      </p>
    </form>
  )
}
