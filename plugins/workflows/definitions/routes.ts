import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import {
  DryRunBody,
  DryRunView,
  FileList,
  ImportAnswer,
  ImportBody,
  NewWorkflow,
  RevisionQuery,
  WorkflowChange,
  WorkflowItem,
  WorkflowParams,
  WorkflowView,
} from './schema.ts'
import type { DryRunDeps } from './dry-run.ts'
import type { FileState } from '../files/workflow-files.ts'
import type { WorkflowDefinitions } from './service.ts'
import { toItem, toView } from './view.ts'

const auth = 'bearer' as const
const exampleStep = { name: 'draft', agent_name: 'writer', prompt: 'Write about {{input}}', output_var: 'draft' }
const exampleBody = {
  name: 'article',
  description: 'Drafts and shortens',
  steps: [exampleStep, { name: 'shorten', agent_name: 'editor', prompt: 'Shorten: {{draft}}' }],
}
const id = '0f9d1c1e-3f0e-4a3e-9a53-0c8f0b6f9d11'
const filled = {
  type: 'agent',
  mode: 'sequential',
  timeout_secs: 120,
  error_mode: 'fail',
  max_retries: 3,
  retry_delay_secs: 1,
  condition: '',
  max_iterations: 5,
  until: '',
}
const exampleView = {
  ...exampleBody,
  id,
  steps: exampleBody.steps.map((step) => ({ ...step, ...filled })),
  total_timeout_secs: 3600,
  run_by: [],
  revision: 1,
  file: null,
  created_at: '2026-01-31T12:00:00.000Z',
  updated_at: '2026-01-31T12:00:00.000Z',
}
type Open = () => Promise<WorkflowDefinitions>

type Files = () => readonly FileState[]
/** Who is asked what a run would do. */
type Rehearse = () => Omit<DryRunDeps, 'findWorkflow'>

/** Interface 4.2; files and import are more. */
export function definitionRoutes(definitions: Open, files: Files, rehearse: Rehearse): readonly AnyRoute[] {
  return [
    listRoute(definitions, files),
    createRoute(definitions),
    filesRoute(files),
    importRoute(definitions),
    readRoute(definitions),
    ...changeRoutes(definitions),
    dryRunRoute(definitions, rehearse),
  ]
}

function listRoute(definitions: Open, files: Files): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/workflows',
    summary: 'The workflows, the oldest first',
    auth,
    effect: 'read',
    cost: 5,
    returns: v.array(WorkflowItem),
    async handle() {
      const problems = new Map(files().map(({ workflowId, problem }) => [workflowId, problem]))
      return (await (await definitions()).list()).map((row) => toItem(row, problems.get(row.id)))
    },
  })
}

function filesRoute(files: Files): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/workflows/files',
    summary: 'The files in the folder of workflows, and what is wrong with them',
    auth,
    effect: 'read',
    cost: 2,
    returns: FileList,
    handle: () => ({
      files: files().map(({ file, workflowId, problem = null }) => ({ file, workflow_id: workflowId, problem })),
    }),
  })
}

function importRoute(definitions: Open): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/workflows/import',
    summary: 'Define workflows by JSON or TOML, also of a compatible service',
    description: 'Nothing is created unless all are right. What has no counterpart is refused or named in `warnings`.',
    auth,
    effect: 'lasting',
    effectOf: ({ body }) => (body.check === true ? 'read' : 'lasting'),
    idempotent: false,
    cost: 20,
    body: ImportBody,
    returns: ImportAnswer,
    errors: ['conflict'],
    example: {
      body: { text: 'name = "hello"\n[[steps]]\nagent_name = "assistant"', format: 'toml' },
      returns: { workflows: [{ workflow_id: id, name: 'hello', steps: 1, warnings: [] }] },
    },
    async handle({ body }) {
      const { importWorkflows } = await import('../import/import.ts')
      const { text, format, check = false } = body
      const imported = await importWorkflows(await definitions(), { text, format, isCheck: check })
      return {
        workflows: imported.map(({ workflow, warnings, ...rest }) => ({
          workflow_id: workflow?.id ?? null,
          warnings: [...warnings],
          ...rest,
        })),
      }
    },
  })
}

function createRoute(definitions: Open): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/workflows',
    summary: 'Define a workflow',
    description:
      '`{{input}}` in a prompt is the current input, `{{<output_var>}}` the output of an earlier step. ' +
      'A step has `agent_id` or `agent_name`. What is wrong is named with its step and field.',
    auth,
    effect: 'lasting',
    cost: 10,
    body: NewWorkflow,
    returns: v.object({ workflow_id: v.string() }),
    status: 201,
    errors: ['conflict'],
    idempotent: true,
    example: { body: exampleBody, returns: { workflow_id: id } },
    async handle({ body, effectId }) {
      const workflow = await (await definitions()).create(body, { id: effectId })
      return { workflow_id: workflow.id }
    },
    async recall(effectId) {
      const workflow = await (await definitions()).find(effectId)
      return workflow && { workflow_id: workflow.id }
    },
  })
}

function readRoute(definitions: Open): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/workflows/:id',
    summary: 'The definition of a workflow, as it was created',
    auth,
    effect: 'read',
    cost: 2,
    params: WorkflowParams,
    query: RevisionQuery,
    returns: WorkflowView,
    errors: ['workflow_not_found'],
    example: { returns: exampleView },
    async handle({ params, query: { revision } }) {
      const found = await (
        await definitions()
      ).require(params.id, revision === undefined ? undefined : Number(revision))
      return toView(found)
    },
  })
}

function changeRoutes(definitions: Open): readonly AnyRoute[] {
  const status = (name: string) => v.object({ status: v.literal(name), workflow_id: v.string() })
  return [
    defineRoute({
      method: 'PUT',
      path: '/api/workflows/:id',
      summary: 'Change a workflow',
      description:
        'Fields that are left out stay; `steps` replaces all steps. Runs that began keep what they began with.',
      auth,
      effect: 'lasting',
      cost: 10,
      params: WorkflowParams,
      body: WorkflowChange,
      shown: async ({ params }) => ({
        fields: toView(await (await definitions()).require(params.id)),
        measured: ['updated_at', 'revision'],
      }),
      returns: status('updated'),
      errors: ['workflow_not_found', 'conflict'],
      example: { body: { description: 'Drafts' }, returns: { status: 'updated', workflow_id: id } },
      async handle({ params, body, unchanged }) {
        if (!unchanged) await (await definitions()).change(params.id, body)
        return { status: 'updated' as const, workflow_id: params.id }
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/workflows/:id',
      summary: 'Delete a workflow; runs that began go on',
      auth,
      effect: 'lasting',
      cost: 5,
      params: WorkflowParams,
      returns: status('removed'),
      errors: ['workflow_not_found', 'conflict'],
      async handle({ params }) {
        await (await definitions()).remove(params.id)
        return { status: 'removed' as const, workflow_id: params.id }
      },
    }),
  ]
}

function dryRunRoute(definitions: Open, deps: Rehearse): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/workflows/:id/dry-run',
    summary: 'What a run of a workflow would do and cost; nothing is run',
    description:
      'The cost is an upper estimate: one call of the model for each iteration, with an answer of `max_tokens`. ' +
      'Calls that tools lead to add to it, and so do retries.',
    auth,
    effect: 'read',
    cost: 10,
    params: WorkflowParams,
    body: DryRunBody,
    returns: DryRunView,
    errors: ['workflow_not_found'],
    async handle({ params, body }) {
      const { rehearse } = await import('./dry-run.ts')
      const service = await definitions()
      const findWorkflow = async (text: string) => (await service.find(text)) ?? service.findByName(text)
      return rehearse(await service.require(params.id), body.input, { ...deps(), findWorkflow })
    },
  })
}
