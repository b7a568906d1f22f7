import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Settings } from './config.ts'
import { WorkflowChanged, WorkflowSteps } from './contract.ts'
import type { WorkflowDefinitions } from './definitions/service.ts'
import { definitionRoutes } from './definitions/routes.ts'
import { migrations } from './migrations.ts'
import { StepTypes } from './steps/registry.ts'

export default definePlugin({
  name: 'workflows',
  version: '1.0.0',
  config: Settings,
  requires: { agents: Agents, audit: Audit },
  provides: { steps: WorkflowSteps },
  hooks: [WorkflowChanged],
  migrations,
  setup({ config, db, hooks, log, routes, services }) {
    const steps = new StepTypes()
    let opened: Promise<WorkflowDefinitions> | undefined
    const definitions = (): Promise<WorkflowDefinitions> =>
      (opened ??= import('./definitions/service.ts').then(({ openDefinitions }) =>
        openDefinitions({ ...services, config, db, hooks, log, steps }),
      ))
    routes.add(...definitionRoutes(definitions))
    return { steps }
  },
})
