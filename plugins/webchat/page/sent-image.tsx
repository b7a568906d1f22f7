import { createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import type { AttachedFile } from './attached.ts'
import { explain } from './api.ts'

/** Formats that a browser draws and that hold no script. */
const IMAGE_NAME = /\.(?:png|jpe?g|gif|webp|avif)$/i
const IMAGE_TYPE = /^image\/(?:png|jpeg|gif|webp|avif)$/

export const isImage = ({ name }: AttachedFile): boolean => IMAGE_NAME.test(name)

/** Reads a file of a message from the daemon. */
export const FileReader = createContext<(fileId: string) => Promise<Blob>>(() =>
  Promise.reject(new Error('This page cannot read files.')),
)

/** A picture of a message that was sent. It opens in its full size; its name stands for one that cannot be shown. */
export function SentImage({ file }: { readonly file: AttachedFile }) {
  const place = useRef<HTMLSpanElement>(null)
  const { url, problem } = useImage(file, place)
  return (
    <span ref={place} class="sent-image">
      {url === undefined ? (
        <span class="attachment" title={problem}>
          <span class="attachment-name">{file.name}</span>
        </span>
      ) : (
        <a href={url} target="_blank" rel="noopener">
          <img src={url} alt={file.name} />
        </a>
      )}
    </span>
  )
}

/** Loads the picture once it comes near the view. */
function useImage({ fileId }: AttachedFile, place: { readonly current: HTMLElement | null }) {
  const read = useContext(FileReader)
  const [url, setUrl] = useState<string>()
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    let made: string | undefined
    let isGone = false
    const load = async (): Promise<void> => {
      const blob = await read(fileId)
      if (isGone) return
      if (IMAGE_TYPE.test(blob.type)) setUrl((made = URL.createObjectURL(blob)))
      else setProblem('The file is not a picture.')
    }
    const observer = new IntersectionObserver(
      ([entry]) => {
        if (!entry?.isIntersecting) return
        observer.disconnect()
        load().catch((error: unknown) => {
          if (!isGone) setProblem(explain(error))
        })
      },
      { rootMargin: '400px' },
    )
    if (place.current) observer.observe(place.current)
    return () => {
      isGone = true
      observer.disconnect()
      if (made !== undefined) URL.revokeObjectURL(made)
    }
  }, [fileId, read])
  return { url, problem }
}
