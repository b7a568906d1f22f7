import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Inference } from '../providers/contract.ts'
import { Usage } from '../usage/contract.ts'
import { visionTools } from './tools.ts'

export default definePlugin({
  name: 'vision',
  version: '1.0.0',
  config: v.object({}),
  requires: { agents: Agents, workspaces: Workspaces, inference: Inference },
  optional: { usage: Usage },
  setup({ db, optional, services, tools }) {
    tools.add(...visionTools({ ...services, db, usage: () => optional('usage') }))
    return {}
  },
})
