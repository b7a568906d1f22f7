import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson, repeatedFlag } from 'svc/cli'
import { omitUndefined } from 'svc/sdk'
import { Entry } from './memory.ts'

const Added = v.looseObject({ added: v.number(), memories: v.array(Entry) })

export default defineCommand({
  description: 'Add a memory. It counts as your own word.',
  args: {
    text: { type: 'positional', required: true, description: 'What is known, in a sentence' },
    agent: { type: 'string', description: 'Name or id of the agent; the default agent without it', valueHint: 'name' },
    user: { type: 'string', description: 'Id of the person it is about and for', valueHint: 'id' },
    session: { type: 'string', description: 'Id of the session, at level session', valueHint: 'id' },
    level: { type: 'string', description: 'user, session or agent', valueHint: 'level' },
    category: { type: 'string', description: 'Its category', valueHint: 'preference' },
    tag: { type: 'string', description: 'A tag; may be given several times', valueHint: 'word' },
    confidence: { type: 'string', description: 'How sure it is, from 0 to 1', valueHint: '0.8' },
    supersedes: { type: 'string', description: 'Id of the memory that it replaces', valueHint: 'id' },
    ...clientArgs,
  },
  examples: [
    ['svc memory add "Ann lives in Graz"', 'for the default agent'],
    ['svc memory add "Prefers trains" --agent scout --user telegram:1234 --tag travel', 'about one person'],
  ],
  async run(args, words) {
    const tags = repeatedFlag(words, 'tag')
    const body = {
      content: args.text,
      ...omitUndefined({
        agent_id: args.agent,
        user_id: args.user,
        session_id: args.session,
        level: args.level,
        category: args.category,
        tags: tags.length === 0 ? undefined : tags,
        confidence: args.confidence === undefined ? undefined : Number(args.confidence),
        supersedes: args.supersedes,
      }),
    }
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/memory', Added, { body }),
    )
    if (args.json) printJson(answer)
    else for (const { id } of answer.memories) print(`Memory ${id} is added.`)
    return exits.ok
  },
})
