import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

/** A reader within this distance of the end follows new text. */
const END_DISTANCE_PX = 60
/** Above the entry that is shown: room to see what it answers. */
const ABOVE_PX = 96

export type StickyScroll = ReturnType<typeof useStickyScroll>

/** Keeps the end in view while the reader is there, and does not move the view of a reader who scrolled back. */
export function useStickyScroll(entries: readonly unknown[]) {
  const frame = useRef<HTMLElement>(null)
  const following = useRef(true)
  const lastTop = useRef(0)
  const [away, setAway] = useState(false)
  const toEnd = (): void => {
    following.current = true
    if (frame.current) frame.current.scrollTop = frame.current.scrollHeight
  }
  useLayoutEffect(() => {
    if (entries.length > 0) {
      if (following.current) toEnd()
      return
    }
    // The welcome text is read from its top.
    following.current = true
    if (frame.current) frame.current.scrollTop = 0
  }, [entries])
  useEffect(() => {
    const column = frame.current?.firstElementChild
    if (!column) return
    const observer = new ResizeObserver(() => {
      if (following.current && frame.current?.querySelector('.entries > li')) toEnd()
    })
    observer.observe(column)
    if (frame.current) observer.observe(frame.current)
    return () => observer.disconnect()
  }, [])
  const onScroll = (): void => {
    const element = frame.current
    if (!element) return
    // Only scrolling back stops following: the end also moves away when something appears below.
    const isNearEnd = element.scrollHeight - element.scrollTop - element.clientHeight < END_DISTANCE_PX
    following.current = isNearEnd || (following.current && element.scrollTop >= lastTop.current)
    lastTop.current = element.scrollTop
    setAway(!following.current && element.querySelector('.entries > li') !== null)
  }
  return {
    frame,
    away,
    toEnd,
    onScroll,
    follow: () => {
      following.current = true
    },
    /** Brings an entry into view, and the focus to it. */
    show: (item: HTMLElement): void => {
      if (!frame.current) return
      following.current = false
      frame.current.scrollTop += item.getBoundingClientRect().top - frame.current.getBoundingClientRect().top - ABOVE_PX
      item.focus({ preventScroll: true })
    },
    /** Keeps the same entries in view when earlier ones are added above them. */
    keepPosition: async (prepend: () => Promise<void>): Promise<void> => {
      const heightBefore = frame.current?.scrollHeight ?? 0
      await prepend()
      requestAnimationFrame(() => {
        if (frame.current) frame.current.scrollTop += frame.current.scrollHeight - heightBefore
      })
    },
  }
}
