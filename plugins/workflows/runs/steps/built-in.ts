import type { StepType } from '../../contract.ts'

/** What is imported on first use. */
export type BuiltInStep = Pick<StepType, 'name' | 'check' | 'run'>
type Declared = Required<Pick<StepType, 'name' | 'description' | 'describe'>>

/** The step types of svc, for lists and rehearsals. */
export const BUILT_IN: readonly Declared[] = [
  {
    name: 'agent',
    description: 'An agent answers the prompt.',
    describe: () => ({ text: 'asks an agent', needsApproval: false }),
  },
  {
    name: 'tool',
    description: 'A tool is called with the rights of the agent. with: tool, args.',
    describe: ({ tool }) => ({ text: `calls the tool ${String(tool)}`, needsApproval: false }),
  },
  {
    name: 'workflow',
    description: 'Another workflow runs with the prompt as its input. with: workflow (id or name).',
    describe: ({ workflow }) => ({ text: `runs the workflow ${String(workflow)}`, needsApproval: false }),
  },
  {
    name: 'approval',
    description: 'A person approves the prompt, or the step fails. with: timeout_secs, escalate.',
    describe: () => ({ text: 'asks a person', needsApproval: true }),
  },
  {
    name: 'wait',
    description: 'Waits for a time, or for an event that an agent publishes. with: seconds, until, event.',
    describe: ({ seconds, until, event }) => ({
      text:
        event === undefined
          ? `waits until ${String(until ?? `${String(seconds)} s later`)}`
          : `waits for ${String(event)}`,
      needsApproval: false,
    }),
  },
  {
    name: 'http',
    description: 'Sends an HTTP request. with: url, method, headers, body, repeatable.',
    describe: ({ url, method }) => ({ text: `sends ${String(method ?? 'GET')} ${String(url)}`, needsApproval: false }),
  },
]
