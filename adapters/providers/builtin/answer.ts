import type { CompletionRequest, Turn } from 'svc/providers'
import { commandLine } from 'svc/sdk'
import { evaluate } from './arithmetic.ts'

const notice = (): string =>
  'No model provider is configured, so this is the small offline model that comes with svc: it answers a few simple ' +
  'things and calls tools when asked, but it cannot think. To connect a real model, store a key of a provider with ' +
  `${commandLine('providers set-key openai')}, or set OPENAI_API_KEY (GROQ_API_KEY, MISTRAL_API_KEY …) and restart, ` +
  "or run Ollama on this machine, or name one under [model] in the agent's manifest."
const help = (tools: CompletionRequest['tools']): string => `${notice()}

What I understand:
- use <tool> {"argument": "value"} calls a tool, for example: ${example(tools)}
- /tool <tool> {"argument": "value"} is the same; several such lines call several tools at once
- list tools shows the tools of this agent
- my name is <name>, and later: what is my name?
- what did I say?
- arithmetic, such as 2 * (3 + 4)
- echo <text>`

/** The text of a message of the user, without its images; empty for other turns. */
export function messageText(turn: Turn): string {
  if (turn.role !== 'user') return ''
  return turn.parts
    .map((part) => (part.type === 'text' ? part.text : ''))
    .filter(Boolean)
    .join('\n')
}

/** The offline model's answer to the last message. Deterministic. */
export function answer(request: CompletionRequest, message: string, earlier: readonly string[]): string {
  const text = message.trim()
  const question = text.toLowerCase().replace(/[?!.\s]+$/, '')
  const last = request.turns.at(-1)
  const echo = /^(?:\/?echo|say)\s+([\s\S]+)$/i.exec(text)
  if (echo) return echo[1] ?? ''
  if (/^(?:\/?help|what can you do|how do (?:i|you) (?:use|call) (?:a )?tools?)$/.test(question))
    return help(request.tools)
  if (
    /^(?:(?:list|show)(?: me)?(?: (?:the|your|all))? tools|what tools do you have|\/?tools|which tools.*)$/.test(
      question,
    )
  )
    return listTools(request)
  if (/what(?:'s| is) my name|do you (?:know|remember) my name|who am i/.test(question)) {
    const name = nameIn(earlier)
    return name ? `Your name is ${name}.` : 'You have not told me your name yet. Say: my name is …'
  }
  const newName = nameIn([text])
  if (newName) return `Nice to meet you, ${newName}. I will remember that for this conversation.`
  if (/what did i (?:just )?(?:say|write|tell you)|(?:repeat|what was) my last message/.test(question)) {
    const before = earlier.at(-1)
    return before === undefined ? 'This is the first thing you say in this conversation.' : `You said: ${before}`
  }
  const value = evaluate(
    question
      .replace(/^(?:what(?:'s| is)|calculate|compute|how much is)\s+/, '')
      .replace(/[×x](?=\s*[\d(])/g, '*')
      .replace(/÷/g, '/')
      .replace(/\s*=$/, ''),
  )
  if (value !== undefined) return `${value}`
  if (/^(?:hi|hello|hey|good (?:morning|afternoon|evening)|hallo|greetings)\b/.test(question))
    return `Hello! ${notice()} Say help to see what I understand.`
  if (/^(?:thanks|thank you|bye|goodbye)\b/.test(question)) return 'You are welcome.'
  if (last?.role === 'user' && last.parts.some(({ type }) => type === 'image'))
    return `I received an image, but I cannot see. ${notice()}`
  return `${notice()} Say help to see what I understand.`
}

/** The results of a round of tool calls as text. */
export function report(results: readonly Extract<Turn, { role: 'tool' }>[]): string {
  return results.map(({ tool, text, failed }) => (failed ? `${tool} failed: ${text}` : `${tool}: ${text}`)).join('\n')
}

function listTools({ tools }: CompletionRequest): string {
  if (tools.length === 0) return 'This agent has no tools.'
  const count = tools.length === 1 ? 'one tool' : `${tools.length} tools`
  const list = tools.map(({ name, description }) => `- ${name}: ${description}`).join('\n')
  return `This agent has ${count}:\n${list}\n\nCall one with: ${example(tools)}`
}

/** An example call, preferably of a tool that can be called without arguments. */
function example(tools: CompletionRequest['tools']): string {
  const simple = tools.find(
    ({ input }) => !('required' in input) || (Array.isArray(input.required) && input.required.length === 0),
  )
  return simple ? `use ${simple.name} {}` : `use ${tools[0]?.name ?? 'time'} {"argument": "value"}`
}

function nameIn(texts: readonly string[]): string | undefined {
  for (const text of texts.toReversed()) {
    const match =
      /\b(?:[Mm]y name is|[Ii] am called|[Cc]all me)\s+([\p{L}][\p{L}\p{M}'’-]*(?:\s+\p{Lu}[\p{L}\p{M}'’-]*)?)/u.exec(
        text,
      )
    if (match) return match[1]
  }
  return undefined
}
