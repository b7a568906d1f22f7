import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { AgentChat } from './agent-chat.ts'
import type { Client } from './client.ts'
import { CommandList, useCommandList } from './command-list.tsx'
import { SendIcon, StopIcon } from './icons.tsx'
import { useValue } from './observable.ts'

const MAX_BOX_HEIGHT_PX = 220

/** Does nothing on a touch screen, where the keyboard would cover what was just opened. */
export function focusMessageBox(): void {
  if (!matchMedia('(pointer: coarse)').matches) document.getElementById('message-box')?.focus()
}

/** The conversation in view would not get the message: the person chooses first. */
function focusElsewhereNotice(): void {
  document.querySelector<HTMLElement>('.elsewhere button')?.focus()
}

interface ComposerProps {
  readonly client: Client
  readonly chat: AgentChat
  readonly name: string
  readonly onSend: (text: string) => void
}

export function Composer({ client, chat, name, onSend }: ComposerProps) {
  useValue(chat.transcript)
  useValue(chat.place)
  const commands = useValue(client.commands)
  const [draft, setDraft] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  const list = useCommandList(draft, commands, (command) => {
    setDraft(command)
    field.current?.focus()
  })
  useEffect(() => {
    focusMessageBox()
  }, [])

  const stop = (): void => void chat.stop()
  const send = (): void => {
    const text = draft.trim()
    if (text === '') return
    if (text === '/stop') {
      setDraft('')
      if (chat.busy) stop()
    } else if (chat.here) {
      setDraft('')
      onSend(text)
      field.current?.focus()
    } else focusElsewhereNotice()
  }
  const takeBack = (id: number): void => {
    const text = chat.takeBack(id)
    if (text !== undefined) setDraft((current) => (current.trim() === '' ? text : `${text}\n${current}`))
    field.current?.focus()
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {list.open && <CommandList list={list} />}
      <QueuedMessages chat={chat} onTakeBack={takeBack} />
      <div class="composer-box">
        <MessageBox
          name={name}
          field={field}
          draft={draft}
          list={list}
          onInput={(text) => {
            setDraft(text)
            list.select(0)
          }}
          onSend={send}
        />
        <SendButton busy={chat.busy} isEmpty={draft.trim() === ''} onStop={stop} />
      </div>
      <Hint busy={chat.busy} />
    </form>
  )
}

interface MessageBoxProps {
  readonly name: string
  readonly field: RefObject<HTMLTextAreaElement | null>
  readonly draft: string
  readonly list: ReturnType<typeof useCommandList>
  readonly onInput: (text: string) => void
  readonly onSend: () => void
}

function MessageBox({ name, field, draft, list, onInput, onSend }: MessageBoxProps) {
  useBoxHeight(field, draft)
  return (
    <>
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
        aria-controls={list.open ? 'commands' : undefined}
        aria-activedescendant={list.open ? `command-${list.index}` : undefined}
        aria-describedby="composer-hint"
        onInput={(event) => onInput(event.currentTarget.value)}
        onKeyDown={(event) => {
          const isSend = event.key === 'Enter' && !event.shiftKey && !event.isComposing
          const isHandled = list.handleKey(event)
          if (isHandled || isSend) event.preventDefault()
          if (isSend && !isHandled) onSend()
        }}
      />
    </>
  )
}

/** Grows the message box with its text. */
function useBoxHeight(field: RefObject<HTMLTextAreaElement | null>, draft: string): void {
  useLayoutEffect(() => {
    const area = field.current
    if (!area) return
    area.style.height = 'auto'
    area.style.height = `${Math.min(area.scrollHeight, MAX_BOX_HEIGHT_PX)}px`
  }, [draft])
}

interface SendButtonProps {
  readonly busy: boolean
  readonly isEmpty: boolean
  readonly onStop: () => void
}

/** Stops the answer while there is nothing to send. */
function SendButton({ busy, isEmpty, onStop }: SendButtonProps) {
  return busy && isEmpty ? (
    <button type="button" class="send stop" onClick={onStop}>
      <StopIcon />
      <span class="hidden">Stop the answer</span>
    </button>
  ) : (
    <button type="submit" class="send" disabled={isEmpty}>
      <SendIcon />
      <span class="hidden">{busy ? 'Send after this answer' : 'Send'}</span>
    </button>
  )
}

function Hint({ busy }: { readonly busy: boolean }) {
  return (
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
  )
}

interface QueuedMessagesProps {
  readonly chat: AgentChat
  readonly onTakeBack: (id: number) => void
}

function QueuedMessages({ chat, onTakeBack }: QueuedMessagesProps) {
  useValue(chat.queue)
  const queued = chat.waitingHere
  if (queued.length === 0) return null
  return (
    <section class="queue" aria-label="Waiting to be sent">
      <ul>
        {queued.map(({ id, text, held }, index) => (
          <li key={id}>
            <span class="queue-state">{index === 0 ? 'Next' : 'Then'}</span>
            <span class="queue-text">{text}</span>
            {held && <span class="queue-held">not sent yet</span>}
            {index === 0 && !chat.busy && (
              <button type="button" onClick={() => chat.sendNext()}>
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
