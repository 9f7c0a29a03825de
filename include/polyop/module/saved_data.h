// The type of AutogradContext::saved_data: named values.
#ifndef POLYOP_MODULE_SAVED_DATA_H
#define POLYOP_MODULE_SAVED_DATA_H

#include "value.h"

namespace polyop {

// A map with the interface of std::unordered_map<std::string, ValuePtr>. It compiles faster.
class SavedData {
 public:
  struct Item {
    std::string first;
    mindspore::ValuePtr second;
    std::unique_ptr<Item> next;
  };
  class iterator {
   public:
    explicit iterator(Item* item) : item_(item) {}
    Item& operator*() const { return *item_; }
    Item* operator->() const { return item_; }
    iterator& operator++() {
      item_ = item_->next.get();
      return *this;
    }
    bool operator==(const iterator& other) const { return item_ == other.item_; }
    bool operator!=(const iterator& other) const { return item_ != other.item_; }

   private:
    Item* item_;
  };

  iterator begin() const { return iterator(first_.get()); }
  iterator end() const { return iterator(nullptr); }
  iterator find(const std::string& name) const {
    iterator at = begin();
    while (at != end() && at->first != name) ++at;
    return at;
  }
  size_t count(const std::string& name) const { return find(name) == end() ? 0 : 1; }
  bool empty() const { return first_ == nullptr; }
  size_t size() const {
    size_t items = 0;
    for (iterator at = begin(); at != end(); ++at) ++items;
    return items;
  }
  mindspore::ValuePtr& operator[](const std::string& name) {
    const iterator item = find(name);
    if (item != end()) return item->second;
    first_.reset(new Item{name, nullptr, std::move(first_)});
    return first_->second;
  }
  mindspore::ValuePtr& at(const std::string& name) {
    if (count(name) == 0) throw std::out_of_range("saved_data has no value of this name");
    return find(name)->second;
  }
  void clear() { first_.reset(); }

 private:
  std::unique_ptr<Item> first_;
};

}  // namespace polyop

#endif
