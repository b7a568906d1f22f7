import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { ChannelDeclaration, defineChannel } from 'svc/channels'
import { knownChannels } from '../../../plugins/channels/http/known-channels.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const folders = readdirSync(`${root}/adapters/channels`, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

/** What the plugin of a channel adds to the channel host. */
async function declarationOf(name: string): Promise<ChannelDeclaration | undefined> {
  const { default: plugin } = (await import(`../../../adapters/channels/${name}/index.ts`)) as {
    readonly default: ReturnType<typeof defineChannel>
  }
  let declared: ChannelDeclaration | undefined
  const channels = { add: (declaration: ChannelDeclaration) => void (declared = declaration) }
  await plugin.setup({ services: { channels }, own: () => {} } as never)
  return declared
}

describe.each(folders)('the channel %s', (folder) => {
  const name = folder.replaceAll('-', '_')

  it('is one of the names that svc knows, in its category', async () => {
    const declared = await declarationOf(folder)
    expect(declared?.name).toBe(name)
    expect(knownChannels().find((known) => known.name === name)).toMatchObject({
      title: declared?.title,
      category: declared?.category,
    })
  })

  it('says how it is set up', async () => {
    const declared = await declarationOf(folder)
    const setup = (await declared?.setup?.())?.default
    expect(setup?.minutes).toBeGreaterThan(0)
    for (const step of setup?.steps ?? ['']) expect(step).toMatch(/^[A-Z].+\.$/)
  })

  it('has a page in the documents, with a configuration and its limits', () => {
    const path = `${root}/docs/channels/${folder}.md`
    expect(existsSync(path)).toBe(true)
    expect(readFileSync(path, 'utf8')).toContain(`[channels.${name}]`)
  })
})
