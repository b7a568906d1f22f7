import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { documentOf } from 'svc/internal'
import { referencePage } from './pages.ts'

/** `plugin` is the folder of the plugin. */
export async function drawReference(plugin: string): Promise<string> {
  const content = await readFile(join(plugin, referencePage.file), 'utf8')
  return documentOf(referencePage, 'api.html', content, { folder: '/pages/docs/api/' })
}
