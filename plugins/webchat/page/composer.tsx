import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { AgentChat } from './agent-chat.ts'
import type { AttachedFile } from './attached.ts'
import { AttachButton, DraftFiles, useDroppedFiles } from './attachments.tsx'
import type { Client } from './client.ts'
import { CommandList, useCommandList } from './command-list.tsx'
import { isEmpty, readyFiles } from './drafts.ts'
import { SendIcon, StopIcon } from './icons.tsx'
import { useValue } from './observable.ts'
import './composer.css'

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
  readonly onSend: (text: string, files: readonly AttachedFile[]) => void
}

export function Composer({ client, chat, name, onSend }: ComposerProps) {
  useValue(chat.transcript)
  useValue(chat.place)
  const commands = useValue(client.commands)
  const draft = useValue(chat.drafts)
  const field = useRef<HTMLTextAreaElement>(null)
  const list = useCommandList(draft.text, commands, (command) => {
    chat.drafts.setText(command)
    field.current?.focus()
  })
  const attach = (files: readonly File[]): void => {
    chat.drafts.attach(files)
    focusMessageBox()
  }
  const isDropping = useDroppedFiles(attach)
  useEffect(() => {
    focusMessageBox()
  }, [])

  const stop = (): void => void chat.stop()
  const send = (): void => {
    if (chat.here) field.current?.focus()
    sendDraft(chat, onSend)
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {isDropping && <p class="drop-here">Drop the files to attach them</p>}
      {list.open && <CommandList list={list} />}
      <QueuedMessages
        chat={chat}
        onTakeBack={(id) => {
          chat.takeBack(id)
          field.current?.focus()
        }}
      />
      <DraftFiles draft={draft} onRemove={(id) => chat.drafts.remove(id)} />
      <div class="composer-box">
        <AttachButton onFiles={attach} />
        <MessageBox name={name} field={field} chat={chat} list={list} onFiles={attach} onSend={send} />
        <SendButton busy={chat.busy} isEmpty={isEmpty(draft)} isReady={readyFiles(draft) !== undefined} onStop={stop} />
      </div>
      <Hint busy={chat.busy} />
    </form>
  )
}

function sendDraft(chat: AgentChat, onSend: ComposerProps['onSend']): void {
  const draft = chat.drafts.value
  const files = readyFiles(draft)
  if (isEmpty(draft) || !files) return
  const text = draft.text.trim()
  if (text === '/stop') {
    chat.drafts.clear()
    if (chat.busy) void chat.stop()
  } else if (chat.here) {
    chat.drafts.clear()
    onSend(text === '' ? describeFiles(files) : text, files)
  } else focusElsewhereNotice()
}

/** The daemon takes no message without words. */
function describeFiles({ length }: readonly AttachedFile[]): string {
  return length === 1 ? 'See the attached file.' : 'See the attached files.'
}

interface MessageBoxProps {
  readonly name: string
  readonly field: RefObject<HTMLTextAreaElement | null>
  readonly chat: AgentChat
  readonly list: ReturnType<typeof useCommandList>
  readonly onFiles: (files: readonly File[]) => void
  readonly onSend: () => void
}

function MessageBox({ name, field, chat, list, onFiles, onSend }: MessageBoxProps) {
  const draft = useValue(chat.drafts).text
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
        onInput={(event) => {
          chat.drafts.setText(event.currentTarget.value)
          list.select(0)
        }}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])]
          if (files.length === 0) return
          event.preventDefault()
          onFiles(files)
        }}
        onKeyDown={(event) => {
          const isSend = event.key === 'Enter' && !event.shiftKey && !event.isComposing
          const isHandled = list.handleKey(event)
          const isEdit = event.key === 'ArrowUp' && draft === ''
          if (isHandled || isSend || isEdit) event.preventDefault()
          if (isSend && !isHandled) onSend()
          if (isEdit) chat.editLast()
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
  /** Whether all files are with the daemon. */
  readonly isReady: boolean
  readonly onStop: () => void
}

/** Stops the answer while there is nothing to send. */
function SendButton({ busy, isEmpty, isReady, onStop }: SendButtonProps) {
  return busy && isEmpty ? (
    <button type="button" class="send stop" onClick={onStop}>
      <StopIcon />
      <span class="hidden">Stop the answer</span>
    </button>
  ) : (
    <button type="submit" class="send" disabled={isEmpty || !isReady}>
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
        {queued.map(({ id, text, files, held }, index) => (
          <li key={id}>
            <span class="queue-state">{index === 0 ? 'Next' : 'Then'}</span>
            <span class="queue-text">{text}</span>
            {files.length > 0 && <span class="queue-held">{files.map((file) => file.name).join(', ')}</span>}
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
