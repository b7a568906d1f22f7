import { useEffect, useRef } from 'preact/hooks'
import type { Client } from './client.ts'
import { focusMessageBox } from './composer.tsx'
import { useValue } from './observable.ts'
import { titleOf } from './session-title.ts'
import './undo-notice.css'

/** Says that a conversation is deleted, as long as that can be undone. */
export function UndoNotice({ client }: { readonly client: Client }) {
  const { deletions } = client
  const pending = useValue(deletions.pending)
  const button = useRef<HTMLButtonElement>(null)
  const id = pending?.session.id
  // The row that had the focus is gone.
  useEffect(() => button.current?.focus(), [id])
  const undo = (): void => {
    void deletions.undo()
    focusMessageBox()
  }
  return (
    <div class="undo-notices" role="status">
      {pending && (
        <div
          class="undo-notice"
          onMouseEnter={() => deletions.hold()}
          onMouseLeave={() => deletions.resume()}
          onFocusIn={({ target }) => {
            if (target instanceof Element && target.matches(':focus-visible')) deletions.hold()
          }}
          onFocusOut={() => deletions.resume()}
        >
          <p>
            “{titleOf(pending.session)}”{pending.problem === undefined ? ' is deleted.' : `: ${pending.problem}`}
          </p>
          {pending.problem === undefined ? (
            <button type="button" ref={button} onClick={undo}>
              Undo
            </button>
          ) : (
            <button type="button" onClick={() => deletions.dismiss()}>
              Dismiss
            </button>
          )}
        </div>
      )}
    </div>
  )
}
