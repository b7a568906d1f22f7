import { expect, it } from 'vitest'
import { sources } from './sources.ts'

/** Words of features. They belong to plugins; the core speaks of plugins, tools, holders and programs. */
const words = new Set(
  'agent session provider model budget approval device audit webhook screening manifest pairing chat'.split(' '),
)

/** Files and folders in which such words stand, how often at most, and why. The numbers may only fall. */
const permitted: readonly (readonly [place: string, most: number, why: string])[] = [
  ['core/cli/', 5, 'Its help says what the product is and gives an example, and its greeting names the page to open.'],
  ['core/build/', 10, 'The build knows every folder of the repository and makes the data of some.'],
  ['core/app/kernel.ts', 3, 'A refused tool call is logged with who called.'],
  ['core/host/folders.ts', 1, 'The folders of the adapters in the repository have these names.'],
  ['core/host/transpiler.ts', 4, 'Plugins import the contract of the adapters under this name.'],
  ['core/testing', 50, 'Authors test their plugins with the features beside them; nothing of the daemon imports it.'],
  ['core/files/confine.ts', 5, 'Devices of the system: one is no file.'],
  ['core/net/outbound.ts', 1, "It says which addresses are the operator's."],
  ['core/net/entry-point.ts', 6, 'The HTTP client of Node calls its connection pool an agent.'],
  ['core/net/outbound-exchange.ts', 6, 'The HTTP client of Node calls its connection pool an agent.'],
  ['core/host/isolation/bridge.ts', 1, 'A header of HTTP has this name.'],
  ['core/net/redirect.ts', 1, 'A header of HTTP has this name.'],
  ['core/process/', 14, 'Terminal sessions and devices of the operating system.'],
  ['core/schema/example.ts', 3, 'Examples of the names of fields in the OpenAPI document.'],
  ['core/http/page-document.ts', 1, 'HTML calls the width of the window so.'],
  ['core/http/openapi.ts', 1, 'What the product is, in the OpenAPI document.'],
  ['core/scope/actor.ts', 1, 'Existing records call the token of a route so.'],
  ['core/storage/', 4, 'Why the database engine is configured as it is, and a setting of PostgreSQL.'],
  [
    'core/tools/',
    15,
    'A tool is what a model calls for an agent: the names are those of the interface, and of plugins outside.',
  ],
]

/** How often a word of a feature is a whole part of an identifier, or stands in a comment or a text. */
function count(text: string): number {
  const parts = text.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? []
  return parts.map((part) => part.toLowerCase()).filter((part) => words.has(part) || words.has(part.replace(/s$/, '')))
    .length
}

const counts = sources('core').map(({ path, text }) => ({ path, found: count(text) }))

it('the core knows no feature: words of features stand in these places only', () => {
  const wrong = counts.filter(({ path, found }) => found > 0 && !permitted.some(([place]) => path.startsWith(place)))
  expect(wrong).toEqual([])
})

it.each(permitted)('%s has no more than %i of them', (place, most) => {
  const found = counts.filter(({ path }) => path.startsWith(place)).reduce((sum, file) => sum + file.found, 0)
  expect(found).toBeLessThanOrEqual(most)
})

it('each place has a reason', () => {
  expect(permitted.filter(([, , why]) => !/^[A-Z].{20,}\.$/.test(why))).toEqual([])
})
