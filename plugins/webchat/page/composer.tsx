import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { AgentChat } from './agent-chat.ts'
import { SendIcon, StopIcon } from './icons.tsx'
import { useValue } from './observable.ts'
import type { Queued } from './queue.ts'
import type { SlashCommand } from './wire.ts'

/** Not where it would make a phone open its keyboard over what was just opened. */
export function focusMessageBox(): void {
  if (!matchMedia('(pointer: coarse)').matches) document.getElementById('message-box')?.focus()
}

interface ComposerProps {
  readonly commands: readonly SlashCommand[]
  readonly chat: AgentChat
  readonly name: string
  readonly busy: boolean
  /** The conversation in view is not the one that would get the message. */
  readonly elsewhere: boolean
  readonly onSend: (text: string) => void
  readonly onStop: () => void
}

export function Composer({ commands, chat, name, busy, elsewhere, onSend, onStop }: ComposerProps) {
  const [draft, setDraft] = useState('')
  const [chosen, setChosen] = useState(0)
  /** The draft for which the list was put away. */
  const [closed, setClosed] = useState<string>()
  useValue(chat.queue)
  const queue = chat.waitingHere
  const field = useRef<HTMLTextAreaElement>(null)
  const offered =
    /^\/\w*$/.test(draft) && closed !== draft
      ? commands
          .filter(({ name, aliases }) => [name, ...aliases].some((each) => `/${each}`.startsWith(draft.toLowerCase())))
          .map(({ name, description }) => [`/${name}`, description] as const)
          .filter(([command]) => command !== draft)
      : []
  const open = offered.length > 0
  const at = Math.min(chosen, offered.length - 1)

  useEffect(() => {
    focusMessageBox()
  }, [])
  useLayoutEffect(() => {
    const area = field.current
    if (!area) return
    area.style.height = 'auto'
    area.style.height = `${Math.min(area.scrollHeight, 220)}px`
  }, [draft])
  useLayoutEffect(() => {
    if (open) document.getElementById(`command-${at}`)?.scrollIntoView({ block: 'nearest' })
  }, [at, open])

  const take = (command: string): void => {
    setDraft(command)
    setClosed(command)
    field.current?.focus()
  }
  const send = (): void => {
    const text = draft.trim()
    if (text === '') return
    if (text === '/stop') {
      setDraft('')
      if (busy) onStop()
      return
    }
    if (elsewhere) {
      document.querySelector<HTMLElement>('.elsewhere button')?.focus()
      return
    }
    setDraft('')
    onSend(text)
    field.current?.focus()
  }
  /** The list obeys the keys as long as it is open; what is left over is for the message. */
  const steer = (event: KeyboardEvent): boolean => {
    const command = offered[at]?.[0]
    if (!open || command === undefined || event.isComposing) return false
    switch (event.key) {
      case 'ArrowDown':
        setChosen((at + 1) % offered.length)
        return true
      case 'ArrowUp':
        setChosen((at + offered.length - 1) % offered.length)
        return true
      case 'Tab':
        if (event.shiftKey) return false
        take(command)
        return true
      case 'Enter':
        if (event.shiftKey) return false
        take(command)
        return true
      case 'Escape':
        setClosed(draft)
        return true
      default:
        return false
    }
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {open && (
        <ul id="commands" class="commands" role="listbox" aria-label="Commands">
          {offered.map(([command, meaning], n) => (
            <li
              key={command}
              id={`command-${n}`}
              role="option"
              aria-selected={n === at}
              // Before the box loses the focus.
              onMouseDown={(event) => {
                event.preventDefault()
                take(command)
              }}
              onMouseMove={() => setChosen(n)}
            >
              <code>{command}</code> {meaning}
            </li>
          ))}
        </ul>
      )}
      {queue.length > 0 && (
        <Waiting
          queue={queue}
          busy={busy}
          onTakeBack={(id) => {
            const text = chat.takeBack(id)
            if (text !== undefined) setDraft((known) => (known.trim() === '' ? text : `${text}\n${known}`))
            field.current?.focus()
          }}
          onSend={() => chat.sendNext()}
        />
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
          aria-autocomplete="list"
          aria-controls={open ? 'commands' : undefined}
          aria-activedescendant={open ? `command-${at}` : undefined}
          aria-describedby="composer-hint"
          onInput={(event) => {
            setDraft(event.currentTarget.value)
            setChosen(0)
          }}
          onKeyDown={(event) => {
            if (steer(event)) {
              event.preventDefault()
              return
            }
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
            event.preventDefault()
            send()
          }}
        />
        {busy && draft.trim() === '' ? (
          <button type="button" class="send stop" onClick={onStop}>
            <StopIcon />
            <span class="hidden">Stop the answer</span>
          </button>
        ) : (
          <button type="submit" class="send" disabled={draft.trim() === ''}>
            <SendIcon />
            <span class="hidden">{busy ? 'Send after this answer' : 'Send'}</span>
          </button>
        )}
      </div>
      <p id="composer-hint" class="composer-hint">
        {busy ? (
          <>
            <kbd>Enter</kbd> sends after this answer, <kbd>Esc</kbd> stops the answer
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

function Waiting({
  queue,
  busy,
  onTakeBack,
  onSend,
}: {
  readonly queue: readonly Queued[]
  readonly busy: boolean
  readonly onTakeBack: (id: number) => void
  readonly onSend: () => void
}) {
  return (
    <section class="queue" aria-label="Waiting to be sent">
      <ul>
        {queue.map(({ id, text, held }, n) => (
          <li key={id}>
            <span class="queue-state">{n === 0 ? 'Next' : 'Then'}</span>
            <span class="queue-text">{text}</span>
            {held && <span class="queue-held">not sent when the page was loaded</span>}
            {n === 0 && !busy && (
              <button type="button" onClick={onSend}>
                Send now
              </button>
            )}
            <button type="button" onClick={() => onTakeBack(id)}>
              Take back
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}
