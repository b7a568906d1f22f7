import { useState } from 'preact/hooks'
import { ApiError, explain } from './api.ts'
import type { OwnerKeyRequest } from './client.ts'
import { Dialog } from './dialog.tsx'
import { FieldProblem } from './problem.tsx'

/** Asks for the API key, for something that a paired device must not do. */
export function OwnerKey({ request }: { readonly request: OwnerKeyRequest }) {
  const [key, setKey] = useState('')
  const [problem, setProblem] = useState<string>()
  const enter = async (): Promise<void> => {
    try {
      await request.enter(key.trim())
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status === 401
      setProblem(isRefused ? 'The daemon does not accept this key.' : explain(error))
    }
  }
  return (
    <Dialog title="This needs the API key" onClose={request.cancel} onSubmit={() => void enter()}>
      <p>{request.message}. It stays in this tab until you sign out or close it.</p>
      <FieldProblem id="owner-key-problem" problem={problem} />
      <label for="owner-key">API key</label>
      <input
        id="owner-key"
        type="password"
        required
        autofocus
        autocomplete="off"
        spellcheck={false}
        value={key}
        aria-invalid={problem !== undefined}
        aria-describedby={problem === undefined ? undefined : 'owner-key-problem'}
        onInput={(event) => setKey(event.currentTarget.value)}
      />
      <div class="dialog-actions">
        <button type="button" class="quiet" onClick={request.cancel}>
          Cancel
        </button>
        <button type="submit" class="primary">
          Go on
        </button>
      </div>
    </Dialog>
  )
}
