import type { Client } from './client.ts'
import { ConnectModel } from './connect-model.tsx'
import { DuplicateAgent } from './duplicate-agent.tsx'
import { ModelPicker } from './model-picker.tsx'
import { RemoveAgent } from './remove-agent.tsx'
import type { AgentSummary } from './wire.ts'

export type DialogName = 'model' | 'connect' | 'duplicate' | 'remove'

interface ConversationDialogProps {
  readonly name: DialogName | undefined
  readonly client: Client
  readonly agent: AgentSummary
  /** Opens another one in its place; none with `undefined`. */
  readonly onOpen: (name: DialogName | undefined) => void
}

/** The open dialog of a conversation, if any. */
export function ConversationDialog({ name, client, agent, onOpen }: ConversationDialogProps) {
  const close = (): void => onOpen(undefined)
  switch (name) {
    case 'model':
      return <ModelPicker client={client} agent={agent} onConnect={() => onOpen('connect')} onClose={close} />
    case 'connect':
      return <ConnectModel client={client} onClose={close} />
    case 'duplicate':
      return <DuplicateAgent client={client} agent={agent} onClose={close} />
    case 'remove':
      return <RemoveAgent client={client} agent={agent} onClose={close} />
    case undefined:
      return null
  }
}
