import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { NoteService } from './service.ts'

/** A note may hold the words of a web page that was read in another session (security facts 1.2). */
const EXTERNAL = ['ExternalNetwork']
/** NoteService that a search without an exact match shows. */
const MAX_MATCHES = 20
const key = (says: string) => v.pipe(v.string(), v.minLength(1), v.description(says))

export function noteTools(notes: NoteService): readonly AnyTool[] {
  const store = defineTool({
    name: 'memory_store',
    risk: 'write',
    description:
      'Remember something for later conversations, as a note under a short key. Replaces a note of the same key.',
    input: v.object({
      key: key('A short name to find it by'),
      value: v.pipe(v.string(), v.description('What to remember')),
    }),
    async run(input, { agentId }) {
      await notes.put(agentId, input.key, input.value)
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
      const found = await notes.recall(agentId, input.key)
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
      return JSON.stringify(await notes.list(agentId, input.limit, input.offset))
    },
  })
  return [store, recall, list]
}
