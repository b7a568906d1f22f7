import { useEffect, useRef, useState } from 'preact/hooks'
import { Mark, WarningIcon } from './icons.tsx'

/** Asks for the daemon's key. It goes to memory and nowhere else, so a reload asks again. */
export function KeyPrompt({ refused, onKey }: { readonly refused: boolean; readonly onKey: (key: string) => void }) {
  const [key, setKey] = useState('')
  const [shown, setShown] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => { field.current?.focus() }, [refused])
  useEffect(() => { if (field.current) field.current.type = shown ? 'text' : 'password' }, [shown])

  return (
    <main class="gate">
      <form class="card" onSubmit={(event) => {
        event.preventDefault()
        if (key.trim() !== '') onKey(key.trim())
      }}>
        <h1><Mark /> This daemon has a key</h1>
        <p>Whoever started it set an API key. Enter it to see the agents and talk to them.</p>
        <label for="api-key">API key</label>
        <div class="field-row">
          <input id="api-key" ref={field} type="password" value={key} required autocomplete="off" spellcheck={false} autocapitalize="off"
            aria-invalid={refused} aria-describedby={refused ? 'key-refused key-hint' : 'key-hint'} onInput={(event) => setKey(event.currentTarget.value)} />
          <button type="button" class="quiet" aria-pressed={shown} onClick={() => setShown(!shown)}>{shown ? 'Hide' : 'Show'}</button>
        </div>
        {refused && <p id="key-refused" class="field-problem" role="alert"><WarningIcon /> That key was refused. Check it and try again.</p>}
        <p id="key-hint" class="hint">
          It is <code>api_key</code> in the daemon's <code>config.toml</code>. This page keeps it in memory only, so it is gone when you
          close or reload the page.
        </p>
        <button type="submit" class="primary">Open the chat</button>
      </form>
    </main>
  )
}
