import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool, Hooks, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import type { Catalog } from '../catalog/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { UsageLedger } from '../usage/contract.ts'

export interface VisionDeps {
  readonly agents: Agents
  readonly workspaces: Workspaces
  readonly inference: Inference
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly hooks: Pick<Hooks, 'check'>
  readonly maxImageBytes: number
  readonly configured: { readonly provider: string; readonly model: string } | undefined
  usage(): UsageLedger | undefined
  catalog(): Catalog | undefined
}
export function visionTools(deps: VisionDeps): readonly AnyTool[] {
  return [analyzeTool(deps)]
}

function analyzeTool(deps: VisionDeps): AnyTool {
  return defineTool({
    name: 'image_analyze',
    risk: 'read',
    // The text in an image may come from anywhere.
    labels: ['ExternalNetwork'],
    refuses: ['Secret', 'Pii'],
    description:
      'Look at a picture of the workspace (PNG, JPEG, GIF or WebP) with your own model, ' +
      'or with one that can see where yours cannot.',
    input: v.object({
      path: v.pipe(v.string(), v.minLength(1), v.maxLength(1024), v.description('Relative to the workspace')),
      prompt: v.optional(v.pipe(v.string(), v.maxLength(10_000)), 'Describe this picture.'),
    }),
    run: async (input, call) => (await import('./analyze.ts')).analyzeImage(deps, input, call),
  })
}
