import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundledTemplates } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { AgentService } from './service.ts'
import { SHIPPED } from './signing.ts'

/**
 * On the first boot of a home one agent exists, by the template `assistant`. It is made once: deleting it is a
 * decision that later boots respect.
 */
export async function welcome(agents: AgentService): Promise<void> {
  if ((await agents.count()) === 0) {
    const manifest = await readFile(join(bundledTemplates(), 'assistant.toml'), 'utf8')
    try {
      await agents.spawn(manifest, { signedBy: SHIPPED })
    } catch (error) {
      // Another daemon, which was started at the same moment on the same database, has made it.
      if (!(error instanceof Refusal && error.code === 'conflict')) throw error
    }
  }
}
