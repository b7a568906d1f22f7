import { useState } from 'preact/hooks'
import { escapeHidden } from './approval-text.ts'
import { copyText } from './clipboard.ts'
import { Dialog } from './dialog.tsx'
import type { Approval } from './wire.ts'

interface AlwaysDialogProps {
  readonly approval: Approval
  readonly onClose: () => void
}

/** What widens a guard is set in the file only, so that nobody who reaches this page can switch it off. */
export function AlwaysDialog({ approval, onClose }: AlwaysDialogProps) {
  const agent = escapeHidden(approval.agent_name)
  const lines = `[plugins.approvals.agents]\n"${approval.agent_id}" = "never"`
  const [copied, setCopied] = useState(false)
  return (
    <Dialog title={`Let ${agent} do this without asking?`} onClose={onClose} onSubmit={onClose}>
      <p>
        That is decided in config.toml of the daemon, and not here: what may go unasked should not be one click away.
      </p>
      <pre class="always-lines" tabIndex={0}>
        {lines}
      </pre>
      <p class="hint">
        With it nothing that {agent} does is asked: no line lets a single program pass, as what a program does depends
        on its files. “For this conversation” lets the same kind of call pass until the conversation ends.
      </p>
      <div class="dialog-actions">
        <button type="submit">Close</button>
        <button type="button" class="primary" onClick={() => void copyText(lines).then(setCopied)}>
          {copied ? 'Copied' : 'Copy the lines'}
        </button>
      </div>
    </Dialog>
  )
}
