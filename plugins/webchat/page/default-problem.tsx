import { useState } from 'preact/hooks'
import type { Client } from './client.ts'
import { WarningIcon } from './icons.tsx'
import { useValue } from './observable.ts'

/** The default model cannot be used as it is configured: why, what answers instead, and what to do. */
export function DefaultProblem({ client, onConnect }: { readonly client: Client; readonly onConnect: () => void }) {
  const status = useValue(client.status)
  const [hidden, setHidden] = useState<string>()
  const problem = status?.default_problem ?? undefined
  if (!status || problem === undefined || hidden === problem) return null
  const { command, default_provider: provider } = status
  const [first = '', rest = ''] = problem.replaceAll('`svc ', `\`${command} `).split(/(?<=[.?])\.? (?=[A-Z])([\s\S]*)/)
  return (
    <section class="problem default-problem" aria-label="Problem with the default model">
      <WarningIcon />
      <div>
        <p role="alert">The default model cannot be used: {first}</p>
        {rest !== '' && (
          <details>
            <summary>More</summary>
            <p>{rest}</p>
          </details>
        )}
        <p>
          {provider === 'builtin' && 'Until then the offline model answers. '}
          Where the daemon runs, <code>{command} doctor</code> says what to do.
        </p>
      </div>
      <div class="problem-actions">
        <button type="button" onClick={onConnect}>
          Connect a model
        </button>
        <button type="button" onClick={() => void client.readStatus()}>
          Check again
        </button>
        <button type="button" onClick={() => setHidden(problem)}>
          Dismiss
        </button>
      </div>
    </section>
  )
}
