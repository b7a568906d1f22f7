import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { RunItem } from './client.ts'

const Event = v.variant('type', [
  v.looseObject({ type: v.literal('run'), run: RunItem }),
  v.looseObject({
    type: v.literal('step'),
    step: v.looseObject({
      step_name: v.string(),
      type: v.string(),
      state: v.string(),
      attempt: v.number(),
      agent_name: v.nullable(v.string()),
      error: v.nullable(v.string()),
      duration_ms: v.nullable(v.number()),
    }),
  }),
])
type Event = v.InferOutput<typeof Event>

export default defineCommand({
  description: 'Follow a run until it has ended, or all runs until Ctrl-C.',
  args: {
    run: { type: 'positional', required: false, description: 'Id of the run' },
    ...clientArgs,
  },
  examples: [
    ['svc workflow watch 0198c5a0-7e1c-7cc3-98c4-dc0c0c07398f', 'its steps so far, and each that follows'],
    ['svc workflow watch', 'all runs as they change'],
  ],
  async run(args) {
    const { run: id, json } = args
    return callDaemon(await connect(args), (client) => watch(client, id, json))
  },
})

/** Prints what happens. A run that failed is a failure of the command. */
export async function watch(client: DaemonClient, id: string | undefined, json: boolean | undefined): Promise<number> {
  let state = ''
  for await (const event of runEvents(client, id)) {
    if (json) printJson(event)
    else print(describe(event))
    if (event.type === 'run') state = event.run.state
  }
  return id !== undefined && state !== 'Completed' ? exits.failed : exits.ok
}

/** What happened so far, then what happens, until the run has ended; of all runs without an id. */
export async function* runEvents(client: DaemonClient, id: string | undefined): AsyncGenerator<Event> {
  const path = `/api/workflows/runs/${id === undefined ? '' : `${encodeURIComponent(id)}/`}events`
  for await (const { data } of client.stream('GET', path, { timeoutMs: 0 })) yield v.parse(Event, data)
}

function describe(event: Event): string {
  if (event.type === 'run') {
    const { id, workflow_name: name, state, error } = event.run
    return `${id}  ${escapeControls(name)}  ${state}${error === null ? '' : `: ${escapeControls(error)}`}`
  }
  const { step_name: name, state, attempt, agent_name: agent, error, duration_ms: ms } = event.step
  const about = [agent, attempt > 1 && `attempt ${attempt}`, ms !== null && `${(ms / 1000).toFixed(1)} s`].filter(
    Boolean,
  )
  const text = `  ${name}  ${state}${about.length === 0 ? '' : ` (${about.join(', ')})`}`
  return escapeControls(error === null ? text : `${text}: ${error}`)
}
