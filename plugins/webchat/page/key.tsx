import { useEffect, useRef, useState } from 'preact/hooks'
import { Mark } from './icons.tsx'
import { FieldProblem } from './problem.tsx'
import type { KeyGate } from './client.ts'
import { leaveFor } from './sign-in.ts'
import type { SignInProvider } from './sign-in.ts'

interface KeyPromptProps extends Pick<KeyGate, 'problem' | 'providers' | 'canPair'> {
  readonly onKey: (key: string, isRemembered: boolean) => void
}

/** Asks for the API key, or for a sign-in where one is configured. */
export function KeyPrompt({ problem, providers, canPair, onKey }: KeyPromptProps) {
  const [key, setKey] = useState('')
  const [isRemembered, setRemembered] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const hasSignIn = providers.length > 0
  useEffect(() => {
    form.current?.querySelector<HTMLElement>('.sign-in, #api-key')?.focus()
  }, [problem, hasSignIn])

  return (
    <main class="gate">
      <form
        ref={form}
        class="card"
        onSubmit={(event) => {
          event.preventDefault()
          if (key.trim() !== '') onKey(key.trim(), isRemembered)
        }}
      >
        <Introduction hasSignIn={hasSignIn} />
        <FieldProblem id="key-refused" problem={problem} />
        <SignInButtons providers={providers} />
        <KeyField
          value={key}
          isRefused={problem !== undefined && !hasSignIn}
          describedBy={problem === undefined ? 'key-hint' : 'key-refused key-hint'}
          onInput={setKey}
        />
        <p id="key-hint" class="hint">
          It is <code>api_key</code> in the daemon's <code>config.toml</code>, or the key of a paired device. It stays
          in this tab until you sign out or close it.
        </p>
        {canPair ? (
          <label class="check">
            <input
              type="checkbox"
              checked={isRemembered}
              onChange={(event) => setRemembered(event.currentTarget.checked)}
            />
            <span>
              Remember this browser as a paired device, until I sign out. Whoever can use it can then use the agents.
            </span>
          </label>
        ) : (
          <p class="hint">
            This browser cannot be remembered while pairing is off: <code>enabled = true</code> under{' '}
            <code>[pairing]</code> allows it.
          </p>
        )}
        <button type="submit" class={hasSignIn ? undefined : 'primary'}>
          Open the chat
        </button>
      </form>
    </main>
  )
}

function Introduction({ hasSignIn }: { readonly hasSignIn: boolean }) {
  return (
    <>
      <h1>
        <Mark /> {hasSignIn ? 'Sign in to this daemon' : 'This daemon has a key'}
      </h1>
      <p>
        {hasSignIn
          ? "Sign in to see the agents and talk to them, or use the daemon's key."
          : 'It was started with an API key. Enter it to see the agents and talk to them.'}
      </p>
    </>
  )
}

function SignInButtons({ providers }: { readonly providers: readonly SignInProvider[] }) {
  if (providers.length === 0) return null
  return (
    <>
      {providers.map((provider) => (
        <button key={provider.id} type="button" class="primary sign-in" onClick={() => leaveFor(provider)}>
          Sign in with {provider.display_name}
        </button>
      ))}
      <div class="or">or</div>
    </>
  )
}

interface KeyFieldProps {
  readonly value: string
  readonly isRefused: boolean
  readonly describedBy: string
  readonly onInput: (key: string) => void
}

function KeyField({ value, isRefused, describedBy, onInput }: KeyFieldProps) {
  const [visible, setVisible] = useState(false)
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (field.current) field.current.type = visible ? 'text' : 'password'
  }, [visible])
  return (
    <>
      <label for="api-key">API key</label>
      <div class="field-row">
        <input
          id="api-key"
          ref={field}
          type="password"
          value={value}
          required
          autocomplete="off"
          spellcheck={false}
          autocapitalize="off"
          aria-invalid={isRefused}
          aria-describedby={describedBy}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
        <button type="button" class="quiet" aria-pressed={visible} onClick={() => setVisible(!visible)}>
          {visible ? 'Hide' : 'Show'}
        </button>
      </div>
    </>
  )
}
