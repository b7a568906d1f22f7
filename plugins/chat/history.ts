import type { Part, Turn } from 'svc/providers'
import type { Message } from '../sessions/contract.ts'

/** Stored messages as a provider takes them. */
export function toTurns(messages: readonly Message[]): readonly Turn[] {
  return messages.flatMap((message): readonly Turn[] => {
    switch (message.role) {
      case 'user': return [{ role: 'user', parts: message.blocks.flatMap((block): Part[] => (block.type === 'text' || block.type === 'image' ? [block] : [])) }]
      case 'assistant': return [{
        role: 'assistant',
        text: message.blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n'),
        calls: message.blocks.flatMap((block) => (block.type === 'call' ? [{ id: block.id, name: block.tool, args: block.args }] : [])),
      }]
      case 'tool': return message.blocks.flatMap((block): Turn[] => (block.type === 'result'
        ? [{ role: 'tool', callId: block.callId, tool: block.tool, text: block.text, failed: block.failed }] : []))
      // Notes of the system are for the reader of the transcript.
      case 'system': return []
    }
  })
}
