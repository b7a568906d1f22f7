import { useEffect, useRef, useState } from 'preact/hooks'
import { Mark, WarningIcon } from './icons.tsx'
import { leaveFor } from './sign-in.ts'
import type { SignInProvider } from './sign-in.ts'

interface KeyPromptProps {
  readonly problem: string | undefined
  readonly providers: readonly SignInProvider[]
  readonly onKey: (key: string, keep: boolean) => void
}

/**
 * Asks for the daemon's key, or for a sign-in where that is configured. What is given goes to memory, so a reload asks
 * again, unless it is to be remembered here.
 */
export function KeyPrompt({ problem, providers, onKey }: KeyPromptProps) {
  const [key, setKey] = useState('')
  const [shown, setShown] = useState(false)
  const [keep, setKeep] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  const first = useRef<HTMLButtonElement>(null)
  const signIn = providers.length > 0
  useEffect(() => {
    ;(first.current ?? field.current)?.focus()
  }, [problem, signIn])
  useEffect(() => {
    if (field.current) field.current.type = shown ? 'text' : 'password'
  }, [shown])

  return (
    <main class="gate">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          if (key.trim() !== '') onKey(key.trim(), keep)
        }}
      >
        <h1>
          <Mark /> {signIn ? 'Sign in to this daemon' : 'This daemon has a key'}
        </h1>
        {signIn ? (
          <p>Sign in to see the agents and talk to them, or use the daemon's key.</p>
        ) : (
          <p>Whoever started it set an API key. Enter it to see the agents and talk to them.</p>
        )}
        {problem !== undefined && (
          <p id="key-refused" class="field-problem" role="alert">
            <WarningIcon /> {problem}
          </p>
        )}
        {providers.map((provider, at) => (
          <button
            key={provider.id}
            {...(at === 0 ? { ref: first } : {})}
            type="button"
            class="primary"
            onClick={() => leaveFor(provider)}
          >
            Sign in with {provider.display_name}
          </button>
        ))}
        {signIn && <div class="or">or</div>}
        <label for="api-key">API key</label>
        <div class="field-row">
          <input
            id="api-key"
            ref={field}
            type="password"
            value={key}
            required
            autocomplete="off"
            spellcheck={false}
            autocapitalize="off"
            aria-invalid={problem !== undefined && !signIn}
            aria-describedby={problem === undefined ? 'key-hint' : 'key-refused key-hint'}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
          <button type="button" class="quiet" aria-pressed={shown} onClick={() => setShown(!shown)}>
            {shown ? 'Hide' : 'Show'}
          </button>
        </div>
        <p id="key-hint" class="hint">
          It is <code>api_key</code> in the daemon's <code>config.toml</code>, or the key of a paired device. This page
          keeps it in memory only, so it is gone when you close or reload the page.
        </p>
        <label class="check">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.currentTarget.checked)} />
          <span>
            Remember it on this device, until I sign out. Whoever can use this browser can then use the daemon.
          </span>
        </label>
        <button type="submit" class={signIn ? undefined : 'primary'}>
          Open the chat
        </button>
      </form>
    </main>
  )
}
