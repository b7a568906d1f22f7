import { useEffect, useRef, useState } from 'preact/hooks'
import type { AttachedFile } from './attached.ts'
import type { Draft, DraftFile } from './drafts.ts'
import { ClipIcon, CloseIcon } from './icons.tsx'
import { isImage, SentImage } from './sent-image.tsx'
import './attachments.css'

export function AttachButton({ onFiles }: { readonly onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <button type="button" class="quiet square attach" onClick={() => input.current?.click()}>
        <ClipIcon />
        <span class="hidden">Attach files</span>
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to attach"
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])])
          // So that the same file can be chosen again.
          currentTarget.value = ''
        }}
      />
    </>
  )
}

/** The files of the message that is being written. */
export function DraftFiles({ draft, onRemove }: { readonly draft: Draft; readonly onRemove: (id: number) => void }) {
  if (draft.files.length === 0) return null
  return (
    <ul class="attachments" aria-label="Attached files">
      {draft.files.map((file) => (
        <li key={file.id} class={`attachment ${file.state}`}>
          <span class="attachment-name">{file.name}</span>
          <FileState file={file} />
          <button type="button" class="quiet square" onClick={() => onRemove(file.id)}>
            <CloseIcon />
            <span class="hidden">Remove {file.name}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}

function FileState({ file }: { readonly file: DraftFile }) {
  if (file.state === 'failed')
    return (
      <span class="attachment-problem" role="alert">
        {file.problem}
      </span>
    )
  if (file.state === 'uploading') return <progress value={file.progress} aria-label={`Sending ${file.name}`} />
  return null
}

/** The files of a message that was sent. */
export function SentFiles({ files }: { readonly files: readonly AttachedFile[] }) {
  if (files.length === 0) return null
  return (
    <ul class="attachments sent" aria-label="Attached files">
      {files.map((file) =>
        isImage(file) ? (
          <li key={file.fileId}>
            <SentImage file={file} />
          </li>
        ) : (
          <li key={file.fileId} class="attachment">
            <ClipIcon />
            <span class="attachment-name">{file.name}</span>
          </li>
        ),
      )}
    </ul>
  )
}

/** Files that are dropped anywhere on the page. Returns whether some are over it. */
export function useDroppedFiles(onFiles: (files: readonly File[]) => void): boolean {
  const [isOver, setOver] = useState(false)
  const latest = useRef(onFiles)
  latest.current = onFiles
  useEffect(() => {
    const stop = new AbortController()
    const listen = (type: 'dragover' | 'dragleave' | 'drop', act: (event: DragEvent) => void): void =>
      document.addEventListener(
        type,
        (event) => {
          if (event.dataTransfer?.types.includes('Files')) act(event)
        },
        { signal: stop.signal },
      )
    listen('dragover', (event) => {
      event.preventDefault()
      setOver(true)
    })
    listen('dragleave', ({ relatedTarget }) => {
      if (relatedTarget === null) setOver(false)
    })
    listen('drop', (event) => {
      // Otherwise the browser opens the file instead of this page.
      event.preventDefault()
      setOver(false)
      latest.current([...(event.dataTransfer?.files ?? [])])
    })
    return () => stop.abort()
  }, [])
  return isOver
}
