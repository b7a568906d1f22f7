import * as v from 'valibot'
import { definePlugin, settable } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Catalog } from '../catalog/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Inference } from '../providers/contract.ts'
import { Usage } from '../usage/contract.ts'
import { visionTools } from './tools.ts'

export default definePlugin({
  name: 'vision',
  version: '1.0.0',
  config: settable(
    'chooses among providers that have their keys already',
    v.object({
      /** The largest image the large vendors accept. */
      max_image_bytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_073_741_824)), 5_242_880),
      /** The model that reads images, whatever model the agent has. */
      see: v.optional(v.object({ provider: v.string(), model: v.string() })),
    }),
  ),
  requires: { agents: Agents, workspaces: Workspaces, inference: Inference },
  optional: { usage: Usage, catalog: Catalog },
  setup({ config, db, hooks, optional, services, tools }) {
    tools.add(
      ...visionTools({
        ...services,
        db,
        hooks,
        configured: config.see,
        maxImageBytes: config.max_image_bytes,
        usage: () => optional('usage'),
        catalog: () => optional('catalog'),
      }),
    )
    return {}
  },
})
