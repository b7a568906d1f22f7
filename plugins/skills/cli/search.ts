import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, print, printJson, renderTable } from 'svc/cli'
import type { Connection } from 'svc/cli'
import { renderSkills, SkillList } from './client.ts'

const OfHub = v.looseObject({
  items: v.array(v.looseObject({ slug: v.string(), owner: v.string(), version: v.string(), description: v.string() })),
})
const OfMarketplace = v.looseObject({
  results: v.array(v.looseObject({ name: v.string(), stars: v.number(), description: v.string() })),
  error: v.optional(v.string()),
})

export default defineCommand({
  description: 'Find skills whose name, description or tags hold all the words; on a hub with hub: or marketplace:.',
  args: {
    words: { type: 'positional', required: true, description: 'Words, in quotes when there are several' },
    ...clientArgs,
  },
  examples: [
    ["svc skill search 'release notes'", 'skills for release notes'],
    ["svc skill search 'hub:release notes'", 'those of ClawHub'],
  ],
  async run(args) {
    const [, place, wanted = ''] = /^(hub|marketplace):(.*)$/s.exec(args.words) ?? []
    if (place !== undefined) {
      const connection = await connect(args)
      const { answer, rows } = await (place === 'hub' ? searchHub : searchMarketplace)(connection, wanted)
      if (args.json) printJson(answer)
      else print(rows.length === 0 ? 'The hub has none.' : renderTable(['INSTALL AS', '', 'DESCRIPTION'], rows))
      return exits.ok
    }
    const { skills } = await callDaemon(await connect(args), (client) => client.call('GET', '/api/skills', SkillList))
    const words = args.words.toLowerCase().split(/\s+/).filter(Boolean)
    const found = skills.filter(({ name, description, tags }) => {
      const text = [name, description, ...tags].join('\n').toLowerCase()
      return words.every((word) => text.includes(word))
    })
    if (args.json) printJson({ skills: found, total: found.length })
    else print(found.length === 0 ? 'No skill has all these words.' : renderSkills(found))
    return exits.ok
  },
})

interface Found {
  readonly answer: unknown
  readonly rows: readonly (readonly string[])[]
}
async function searchHub(connection: Connection, words: string): Promise<Found> {
  const path = `/api/clawhub/search?q=${encodeURIComponent(words)}`
  const answer = await callDaemon(connection, (client) => client.call('GET', path, OfHub))
  const rows = answer.items.map(({ slug, owner, version, description }) => [
    `hub:${owner === '' ? '' : `@${owner}/`}${slug}`,
    version,
    cut(description),
  ])
  return { answer, rows }
}
async function searchMarketplace(connection: Connection, words: string): Promise<Found> {
  const path = `/api/marketplace/search?q=${encodeURIComponent(words)}`
  const answer = await callDaemon(connection, (client) => client.call('GET', path, OfMarketplace))
  if (answer.error !== undefined) throw new Failure(exits.failed, answer.error)
  const rows = answer.results.map(({ name, stars, description }) => [
    `marketplace:${name}`,
    `${stars} stars`,
    cut(description),
  ])
  return { answer, rows }
}
const cut = (text: string): string => (text.length > 60 ? `${text.slice(0, 59)}…` : text)
