import type { AgentChat } from './agent-chat.ts'
import { focusMessageBox } from './composer.tsx'
import { useValue } from './observable.ts'
import './last-message.css'

/** What can be done with the last message once it is answered. */
export function LastMessage({ chat, onAgain }: { readonly chat: AgentChat; readonly onAgain: () => void }) {
  const last = useValue(chat.transcript).entries.at(-1)
  if (last?.kind !== 'answer' || (last.state !== 'done' && last.state !== 'stopped')) return null
  return (
    <div class="last-message" role="group" aria-label="Last message">
      <button
        type="button"
        class="quiet"
        onClick={() => {
          chat.editLast()
          focusMessageBox()
        }}
      >
        Edit message
      </button>
      <button type="button" class="quiet" onClick={onAgain}>
        Answer again
      </button>
    </div>
  )
}
