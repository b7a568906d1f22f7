import * as v from 'valibot'
import { definePlugin, fields, settable } from 'svc/sdk'
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
      max_image_bytes: fields.integer('Largest image that a model is shown, in bytes.', 5_242_880, 1, 1_073_741_824),
      /** The model that reads images, whatever model the agent has. */
      see: v.optional(
        v.object({
          provider: v.pipe(
            v.string(),
            v.description('Provider of the model that reads images; set both keys or none.'),
          ),
          model: v.pipe(v.string(), v.description('Model that reads images; the one of the agent when unset.')),
        }),
      ),
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
