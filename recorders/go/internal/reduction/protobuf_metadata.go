package reduction

func (m *message) listMeta(data []byte) {
	m.open('{')
	m.fields(data, func(w *wire) {
		switch w.number {
		case 2:
			m.text("resourceVersion", string(w.data))
		case 3:
			m.text("continue", string(w.data))
		case 4:
			m.number("remainingItemCount", int64(w.value))
		}
	})
	m.close('}')
}

func (m *message) objectMeta(data []byte) {
	m.open('{')
	m.fields(data, func(w *wire) {
		switch w.number {
		case 1:
			m.text("name", string(w.data))
		case 3:
			m.text("namespace", string(w.data))
		case 5:
			m.text("uid", string(w.data))
		case 6:
			m.text("resourceVersion", string(w.data))
		case 7:
			if w.value != 0 {
				m.number("generation", int64(w.value))
			}
		case 8:
			m.time("creationTimestamp", w.data)
		case 9:
			m.time("deletionTimestamp", w.data)
		case 10:
			m.number("deletionGracePeriodSeconds", int64(w.value))
		}
	})
	m.pairs("labels", data, 11)
	m.pairs("annotations", data, 12)
	m.owners(data)
	m.texts("finalizers", data, 14)
	m.close('}')
}

// pairs writes a map of texts.
func (m *message) pairs(name string, data []byte, number int) {
	m.repeated(name, data, number, "{}", func(w *wire) {
		var key, value string
		m.fields(w.data, func(w *wire) {
			switch w.number {
			case 1:
				key = string(w.data)
			case 2:
				value = string(w.data)
			}
		})
		m.member(key)
		m.string(value)
	})
}

func (m *message) owners(data []byte) {
	m.repeated("ownerReferences", data, 13, "[]", func(w *wire) {
		m.element()
		m.open('{')
		m.each(w.data, []named{{1, "kind"}, {3, "name"}, {4, "uid"}, {5, "apiVersion"}})
		m.fields(w.data, func(w *wire) {
			switch w.number {
			case 6:
				m.flag("controller", w.value != 0)
			case 7:
				m.flag("blockOwnerDeletion", w.value != 0)
			}
		})
		m.close('}')
	})
}

// time writes the seconds of a time. The API has no parts of a second here, and a zero time is an absent one.
func (m *message) time(name string, data []byte) {
	m.fields(data, func(w *wire) {
		if w.number == 1 && w.value != 0 {
			m.moment(name, int64(w.value))
		}
	})
}

func (m *message) status(data []byte) {
	m.fields(data, func(w *wire) {
		switch w.number {
		case 1:
			m.member("metadata")
			m.listMeta(w.data)
		case 5:
			m.member("details")
			m.details(w.data)
		case 6:
			if w.value != 0 {
				m.number("code", int64(int32(w.value)))
			}
		}
	})
	m.each(data, []named{{2, "status"}, {3, "message"}, {4, "reason"}})
}

func (m *message) details(data []byte) {
	m.open('{')
	m.each(data, []named{{1, "name"}, {2, "group"}, {3, "kind"}, {6, "uid"}})
	m.repeated("causes", data, 4, "[]", func(w *wire) {
		m.element()
		m.open('{')
		m.each(w.data, []named{{1, "reason"}, {2, "message"}, {3, "field"}})
		m.close('}')
	})
	m.fields(data, func(w *wire) {
		if w.number == 5 && w.value != 0 {
			m.number("retryAfterSeconds", int64(int32(w.value)))
		}
	})
	m.close('}')
}

func (m *message) options(data []byte) {
	m.fields(data, func(w *wire) {
		switch w.number {
		case 1:
			m.number("gracePeriodSeconds", int64(w.value))
		case 2:
			m.member("preconditions")
			m.open('{')
			m.each(w.data, []named{{1, "uid"}, {2, "resourceVersion"}})
			m.close('}')
		case 3:
			m.flag("orphanDependents", w.value != 0)
		case 4:
			m.text("propagationPolicy", string(w.data))
		}
	})
	m.texts("dryRun", data, 5)
}
