// Package cache keeps values for a while.
package cache

import (
	"errors"
	"sync"
	"time"
)

var ErrMissing = errors.New("missing")

type entry struct {
	value   string
	expires time.Time
}

// Cache is safe for concurrent use.
type Cache struct {
	mu      sync.RWMutex
	entries map[string]entry
}

func New(size int) *Cache {
	return &Cache{entries: make(map[string]entry, size)}
}

func (c *Cache) Get(key string) (string, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	found, ok := c.entries[key]
	if !ok || time.Now().After(found.expires) {
		return "", ErrMissing
	}
	return found.value, nil
}

func (c *Cache) Put(key, value string, ttl time.Duration) {
	c.mu.Lock()
	c.entries[key] = entry{value: value, expires: time.Now().Add(ttl)}
	c.mu.Unlock()
}

func (c *Cache) Sweep() int {
	removed := 0
	for key, found := range c.entries {
		switch {
		case time.Now().After(found.expires):
			delete(c.entries, key)
			removed++
		default:
			continue
		}
	}
	return removed
}
