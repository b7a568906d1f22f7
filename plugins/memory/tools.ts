import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Note } from './entries/notes.ts'
import type { OpenMemories } from './entries/open.ts'

/** A note may hold the words of a web page that was read in another session (security facts 1.2). */
const EXTERNAL = ['ExternalNetwork']
/** Notes that a search without an exact match shows. */
const MAX_MATCHES = 20
const MAX_QUERY_CHARS = 2_000
const key = (says: string) => v.pipe(v.string(), v.minLength(1), v.description(says))

/** The memories of the plugin, opened with their first use. */
export type LazyMemories = () => Promise<OpenMemories>

export function memoryTools(memories: LazyMemories): readonly AnyTool[] {
  const store = defineTool({
    name: 'memory_store',
    risk: 'write',
    description:
      'Remember something for later conversations, as a note under a short key. Replaces a note of the same key.',
    input: v.object({
      key: key('A short name to find it by'),
      value: v.pipe(v.string(), v.description('What to remember')),
    }),
    async run(input, { agentId, turnId, sessionId, labels = [] }) {
      const { notes } = await memories()
      await notes.put(agentId, input.key, input.value, { kind: 'agent', turnId, sessionId, labels })
      return `Remembered under "${input.key}".`
    },
  })
  const recall = defineTool({
    name: 'memory_recall',
    risk: 'read',
    labels: EXTERNAL,
    description:
      'Recall a note by its key. When no note has this key, finds notes that contain the text. Answers a JSON array.',
    input: v.object({ key: key('A key, or a word to look for') }),
    async run(input, { agentId }) {
      const { notes } = await memories()
      const found: readonly Note[] = await notes.recall(agentId, input.key)
      if (found.length === 0) return `No note found for "${input.key}".`
      const more = found.length > MAX_MATCHES ? `\n${found.length - MAX_MATCHES} more; use a longer text.` : ''
      return JSON.stringify(found.slice(0, MAX_MATCHES)) + more
    },
  })
  const list = defineTool({
    name: 'memory_list',
    risk: 'read',
    labels: EXTERNAL,
    description: 'List the notes, the latest first. Answers JSON with the notes and their total number.',
    input: v.object({
      limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100)), 20),
      offset: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0)), 0),
    }),
    async run(input, { agentId }) {
      const { notes } = await memories()
      return JSON.stringify(await notes.list(agentId, input.limit, input.offset))
    },
  })
  return [store, recall, list, searchTool(memories), forgetTool(memories)]
}

function searchTool(memories: LazyMemories): AnyTool {
  return defineTool({
    name: 'memory_search',
    risk: 'read',
    labels: EXTERNAL,
    description:
      'Search everything you remember, notes too, by meaning and words. Answers a JSON array, the best first, each with ' +
      'its id, when it was learnt and where it is known from; says so when nothing is known.',
    input: v.object({
      query: v.pipe(v.string(), v.minLength(1), v.maxLength(MAX_QUERY_CHARS), v.description('A question or words')),
      category: v.optional(v.pipe(v.string(), v.minLength(1), v.description('Only of this category'))),
      limit: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(50)), 10),
    }),
    async run({ query, category, limit }, { agentId, sessionId, user, signal }) {
      const [{ searchOwn }, opened] = await Promise.all([import('./entries/own-memories.ts'), memories()])
      const found = await searchOwn(opened, { agentId, sessionId, user }, { text: query, category, limit, signal })
      return found.length === 0 ? `Nothing is known about "${query}".` : JSON.stringify(found)
    },
  })
}

function forgetTool(memories: LazyMemories): AnyTool {
  return defineTool({
    name: 'memory_forget',
    risk: 'write',
    description: 'Forget memories of yours by their ids, as memory_search gives them. Their content is gone for good.',
    input: v.object({
      ids: v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(64))), v.minLength(1), v.maxLength(100)),
    }),
    async run({ ids }, { agentId, sessionId, user }) {
      const [{ forgetOwn }, opened] = await Promise.all([import('./entries/own-memories.ts'), memories()])
      return JSON.stringify(await forgetOwn(opened, { agentId, sessionId, user }, ids))
    },
  })
}
